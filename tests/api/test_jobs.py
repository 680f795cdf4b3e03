from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from typing import Any


def test_a_submitted_recipe_becomes_recipe_run_and_job(service: Any, submit: Callable[..., Any]) -> None:
    job = submit(service, recipe={"name": "tiny", "steps": 7, "seed": 3})
    assert (job["state"], job["attempt"], job["run_name"]) == ("queued", 1, "tiny-1")
    run = service.api("GET", "/runs/tiny-1")
    assert (run["job_id"], run["seed"], run["compute_unit"]) == (job["id"], 3, "cpu_hours")
    assert run["recipe"]["id"] == job["recipe_id"]
    recipe = service.api("GET", "/recipes/tiny")
    assert recipe["config"]["steps"] == 7
    assert recipe["config"]["loss"]["kind"] == "cispo"  # defaults are written out


def test_run_names_count_up(service: Any, submit: Callable[..., Any]) -> None:
    names = [submit(service)["run_name"] for _ in range(3)]
    assert names == ["tiny-1", "tiny-2", "tiny-3"]
    assert submit(service, name="by-hand")["run_name"] == "by-hand"
    problem = service.api("POST", "/jobs", expect=409, json={"recipe": {"name": "tiny"}, "name": "by-hand"})
    assert problem["code"] == "run_exists"


def test_concurrent_submissions_get_names_of_their_own(service: Any, submit: Callable[..., Any]) -> None:
    names: list[str] = []
    threads = [threading.Thread(target=lambda: names.append(submit(service)["run_name"])) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(names) == [f"tiny-{i}" for i in range(1, 9)]


def test_overrides_change_single_values(service: Any, submit: Callable[..., Any]) -> None:
    job = submit(service, overrides={"optimizer.learning_rate": 1e-3, "steps": 12})
    config = service.api("GET", f"/recipes/{job['recipe_id']}")["config"]
    assert (config["optimizer"]["learning_rate"], config["steps"]) == (1e-3, 12)


def test_a_stored_recipe_can_be_submitted_by_name(service: Any, submit: Callable[..., Any]) -> None:
    service.api("POST", "/recipes", json={"name": "tiny", "config": {"name": "tiny", "steps": 5}})
    assert submit(service, recipe="tiny")["run_name"] == "tiny-1"


def test_a_wrong_recipe_is_refused_with_field_and_remedy(service: Any) -> None:
    body = {"recipe": {"name": "tiny", "loss": {"kind": "cispo", "epsilon": 5}}}
    problem = service.api("POST", "/jobs", expect=422, json=body)
    assert problem["errors"][0]["field"] == "recipe.loss.epsilon"
    assert "cispo_cap" in problem["errors"][0]["message"]
    assert service.api("GET", "/jobs")["items"] == []
    assert service.api("GET", "/recipes")["items"] == []


def test_claim_heartbeat_finish(service: Any, submit: Callable[..., Any], claim: Callable[..., Any]) -> None:
    job = submit(service)
    lease = claim(service, job)
    assert (lease["attempt"], lease["run_name"], lease["recipe"]["name"]) == (1, "tiny-1", "tiny")
    assert service.api("GET", f"/jobs/{job['id']}")["state"] == "starting"
    beat = service.api(
        "POST",
        f"/jobs/{job['id']}/heartbeat",
        json={
            "lease_token": lease["lease_token"],
            "progress": {"step": 3},
            "log_tail": "step 3\r\x1b[0m\x00",
        },
    )
    assert beat["cancel"] is False
    running = service.api("GET", f"/jobs/{job['id']}")
    assert (running["state"], running["progress"], running["runner"]) == ("running", {"step": 3}, "host-1")
    assert running["log_tail"].startswith("step 3\n")
    report = {"lease_token": lease["lease_token"], "state": "finished", "exit_code": 0}
    ended = service.api("POST", f"/jobs/{job['id']}/finish", json=report)
    assert (ended["state"], ended["exit_code"]) == ("finished", 0)
    assert ended["finished_at"] >= ended["started_at"]
    again = service.api("POST", f"/jobs/{job['id']}/finish", expect=200, json=report)
    assert again["finished_at"] == ended["finished_at"]
    other = service.api("POST", f"/jobs/{job['id']}/finish", expect=409, json={**report, "state": "failed"})
    assert other["code"] == "job_ended"
    assert service.api("GET", f"/jobs/{job['id']}")["state"] == "finished"


def test_of_many_claimers_one_wins(service: Any, submit: Callable[..., Any]) -> None:
    job = submit(service)
    answers: list[int] = []

    def try_it(i: int) -> None:
        body = {"attempt": 1, "runner": f"host-{i}"}
        answers.append(service.request("POST", f"/jobs/{job['id']}/claim", json=body).status_code)

    threads = [threading.Thread(target=try_it, args=(i,)) for i in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [200] + [409] * 19


def test_a_wrong_lease_can_neither_beat_nor_finish(
    service: Any, submit: Callable[..., Any], claim: Callable[..., Any]
) -> None:
    job = submit(service)
    wrong = {"lease_token": str(uuid.uuid4())}
    for _ in range(2):  # before and after it is claimed
        problem = service.api("POST", f"/jobs/{job['id']}/heartbeat", expect=409, json=wrong)
        assert problem["code"] == "stale_attempt"
        service.api("POST", f"/jobs/{job['id']}/finish", expect=409, json={**wrong, "state": "finished"})
        if service.api("GET", f"/jobs/{job['id']}")["state"] == "queued":
            claim(service, job)
    assert service.api("GET", f"/jobs/{job['id']}")["state"] == "starting"


def test_a_queued_job_is_cancelled_at_once(service: Any, submit: Callable[..., Any]) -> None:
    job = submit(service)
    assert service.api("POST", f"/jobs/{job['id']}/cancel")["state"] == "cancelled"
    assert service.api("POST", f"/jobs/{job['id']}/cancel")["state"] == "cancelled"
    service.api("POST", f"/jobs/{job['id']}/claim", expect=409, json={"attempt": 1, "runner": "h"})


def test_a_running_job_hears_of_its_cancellation(
    service: Any, submit: Callable[..., Any], claim: Callable[..., Any]
) -> None:
    job = submit(service)
    lease = {"lease_token": claim(service, job)["lease_token"]}
    cancelled = service.api("POST", f"/jobs/{job['id']}/cancel")
    assert (cancelled["state"], cancelled["cancel_requested"]) == ("starting", True)
    assert service.api("POST", f"/jobs/{job['id']}/heartbeat", json=lease)["cancel"] is True
    ended = service.api("POST", f"/jobs/{job['id']}/finish", json={**lease, "state": "cancelled"})
    assert ended["state"] == "cancelled"


def test_a_finished_job_is_not_cancelled(
    service: Any, submit: Callable[..., Any], claim: Callable[..., Any]
) -> None:
    job = submit(service)
    lease = {"lease_token": claim(service, job)["lease_token"]}
    service.api("POST", f"/jobs/{job['id']}/finish", json={**lease, "state": "finished"})
    assert service.api("POST", f"/jobs/{job['id']}/cancel", expect=409)["code"] == "job_ended"


def test_a_released_job_goes_on_with_another_runner(
    service: Any, submit: Callable[..., Any], claim: Callable[..., Any]
) -> None:
    job = submit(service)
    lease = {"lease_token": claim(service, job)["lease_token"]}
    released = service.api("POST", f"/jobs/{job['id']}/finish", json={**lease, "state": "released"})
    assert (released["state"], released["attempt"]) == ("queued", 2)
    assert claim(service, job, attempt=2, runner="host-2")["attempt"] == 2
    service.api("POST", f"/jobs/{job['id']}/heartbeat", expect=409, json=lease)


def test_jobs_are_filtered_by_state(service: Any, submit: Callable[..., Any]) -> None:
    jobs = [submit(service) for _ in range(3)]
    service.api("POST", f"/jobs/{jobs[1]['id']}/cancel")
    queued = service.api("GET", "/jobs", params={"state": "queued"})["items"]
    assert [job["id"] for job in queued] == [jobs[2]["id"], jobs[0]["id"]]
    assert service.api("GET", "/jobs", expect=422, params={"state": "lost"})["errors"][0]["field"] == "state"


def test_long_logs_keep_their_end(
    service: Any, submit: Callable[..., Any], claim: Callable[..., Any]
) -> None:
    job = submit(service)
    token = claim(service, job)["lease_token"]
    text = "".join(f"line {i}\n" for i in range(20_000))
    service.api("POST", f"/jobs/{job['id']}/heartbeat", json={"lease_token": token, "log_tail": text})
    kept = service.api("GET", f"/jobs/{job['id']}")["log_tail"]
    assert len(kept) == 20_000
    assert kept.endswith("line 19999\n")
