"""Workers register, are shown with what they do, and get only jobs that fit."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

import rlcast


@pytest.fixture
def service_settings() -> dict[str, Any]:
    return {"broker_url": "redis://127.0.0.1:1/0", "sweep_s": 0.1, "relay_s": 0.05, "worker_idle_s": 0.3}


def about(name: str = "w1", n_gpus: int = 0, **fields: Any) -> dict[str, Any]:
    devices = [{"uuid": f"GPU-{name}-{i}", "name": "NVIDIA H200", "memory_gib": 141.0} for i in range(n_gpus)]
    return {
        "name": name,
        "hostname": f"host-of-{name}",
        "devices": devices,
        "cpus": 8,
        "memory_gib": 64.0,
        "versions": {"rlcast": rlcast.__version__, "python": "3.11.7"},
        "queues": ["gpu", "cpu"] if n_gpus else ["cpu"],
        **fields,
    }


def register(service: Any, *args: Any, beat: str | None = "idle", **fields: Any) -> str:
    worker_id = str(service.api("POST", "/workers", expect=201, json=about(*args, **fields))["id"])
    if beat:
        service.api("POST", f"/workers/{worker_id}/heartbeat", json={"state": beat})
    return worker_id


def claim(service: Any, job: dict[str, Any], worker_id: str, expect: int = 200) -> Any:
    body = {"attempt": job["attempt"], "runner": "w", "worker_id": worker_id}
    return service.api("POST", f"/jobs/{job['id']}/claim", expect=expect, json=body)


def shown(service: Any, worker: str) -> Any:
    return service.api("GET", f"/workers/{worker}")


def test_a_worker_is_shown_with_what_it_offers_and_does(service: Any) -> None:
    worker_id = register(service, "w1", 2, beat=None, labels={"zone": "a"}, slots=2)
    [listed] = service.api("GET", "/workers")["items"]
    assert (listed["id"], listed["state"], listed["labels"]) == (worker_id, "starting", {"zone": "a"})
    assert [device["uuid"] for device in listed["devices"]] == ["GPU-w1-0", "GPU-w1-1"]
    assert (listed["healthy"], listed["last_taken_at"]) == (True, None)
    service.api("POST", f"/workers/{worker_id}/heartbeat", json={"state": "idle", "n_taken": 1})
    assert shown(service, "w1")["last_taken_at"] is not None
    service.api("POST", "/workers/w1/heartbeat", json={"state": "gone"})
    assert service.api("GET", "/workers")["items"] == []
    [gone] = service.api("GET", "/workers", params={"gone": True})["items"]
    assert (gone["state"], gone["healthy"], gone["reason"]) == ("gone", False, "it ended")


def test_another_version_is_refused_with_both_named(service: Any) -> None:
    body = about(versions={"rlcast": "0.99.1"})
    problem = service.api("POST", "/workers", expect=409, json=body)
    assert problem["code"] == "version_mismatch"
    assert "0.99.1" in problem["detail"]
    assert rlcast.__version__ in problem["detail"]
    patch = rlcast.__version__.rsplit(".", 1)[0] + ".999"
    service.api("POST", "/workers", expect=201, json=about(versions={"rlcast": patch}))


def test_a_name_belongs_to_one_host_and_a_gpu_to_one_worker(service: Any) -> None:
    first = register(service, "w1", 2)
    problem = service.api("POST", "/workers", expect=409, json=about("w1", hostname="elsewhere"))
    assert (problem["code"], "host-of-w1" in problem["detail"]) == ("worker_exists", True)
    body = {**about("w2", 1), "devices": about("w1", 1)["devices"]}
    problem = service.api("POST", "/workers", expect=409, json=body)
    assert (problem["code"], "GPU-w1-0" in problem["detail"]) == ("device_taken", True)
    second = register(service, "w1", 2)  # started again on its host: takes over
    problem = service.api("POST", f"/workers/{first}/heartbeat", expect=409, json={"state": "idle"})
    assert problem["code"] == "worker_gone"
    assert shown(service, "w1")["id"] == second


def test_silence_makes_a_worker_unhealthy_then_gone_and_it_may_come_back(
    service: Any, sql: Callable[..., Any], wait_until: Callable[..., Any]
) -> None:
    worker_id = register(service)
    sql("UPDATE workers SET last_heartbeat_at = now() - interval '70 seconds'")
    silent = shown(service, worker_id)
    assert (silent["healthy"], silent["reason"]) == (False, "no heartbeat for 70 s")
    sql("UPDATE workers SET last_heartbeat_at = now() - interval '1 hour'")
    wait_until(lambda: shown(service, worker_id)["state"] == "gone")
    service.api("POST", f"/workers/{worker_id}/heartbeat", json={"state": "idle"})
    assert (shown(service, worker_id)["state"], shown(service, worker_id)["healthy"]) == ("idle", True)


def test_a_worker_that_takes_nothing_is_not_healthy(
    service: Any, submit: Callable[..., Any], sql: Callable[..., Any]
) -> None:
    worker_id = register(service)
    job = submit(service)
    sql("UPDATE jobs SET published_at = now()")  # as if the broker had it
    time.sleep(0.4)
    lazy = shown(service, worker_id)
    assert (lazy["healthy"], lazy["state"]) == (False, "idle")
    assert f"has not taken job {job['id']}, which fits" in lazy["reason"]
    assert service.api("POST", f"/workers/{worker_id}/heartbeat", json={"state": "idle"})["stalled"] is True
    register(service, "w2", 0, queues=["other"])
    assert shown(service, "w2")["healthy"] is True  # that job is not for it
    claim(service, job, worker_id)
    assert shown(service, worker_id)["healthy"] is True


def test_drain_is_heard_with_the_next_heartbeat_and_stops_claims(
    service: Any, submit: Callable[..., Any]
) -> None:
    worker_id = register(service)
    assert service.api("POST", f"/workers/{worker_id}/heartbeat", json={"state": "idle"})["drain"] is False
    service.api("POST", "/workers/w1/drain")
    assert service.api("POST", f"/workers/{worker_id}/heartbeat", json={"state": "idle"})["drain"] is True
    problem = claim(service, submit(service), worker_id, expect=409)
    assert (problem["code"], "draining" in problem["detail"]) == ("does_not_fit", True)
    service.api("POST", f"/workers/{worker_id}/heartbeat", json={"state": "gone"})
    service.api("POST", "/workers/w1/drain", expect=409)
    actions = [entry["action"] for entry in service.api("GET", "/audit")["items"]]
    assert actions.count("worker.drained") == 1


MISFITS = [
    ({"gpus": 3}, "3 GPUs; worker w1 has 2 free"),
    ({"gpus": 1, "gpu_memory_gib": 180}, "1 GPUs of 180 GiB"),
    ({"memory_gib": 65}, "65 GiB; worker w1 has 64 GiB free"),
    ({"cpus": 9}, "9 CPUs; worker w1 has 8"),
    ({"labels": {"zone": "b"}}, "label zone=b"),
]


def test_a_worker_gets_only_what_fits(
    service: Any, submit: Callable[..., Any], subtests: pytest.Subtests
) -> None:
    worker_id = register(service, "w1", 2, labels={"zone": "a"})
    for resources, words in MISFITS:
        with subtests.test(resources=resources):
            job = submit(service, resources=resources)
            problem = claim(service, job, worker_id, expect=409)
            assert (problem["code"], words in problem["detail"]) == ("does_not_fit", True), problem
            assert service.api("GET", f"/jobs/{job['id']}")["state"] == "queued"
            unregistered = {"attempt": 1, "runner": "anybody"}
            service.api("POST", f"/jobs/{job['id']}/claim", expect=409, json=unregistered)
    job = submit(service, resources={"gpus": 2, "memory_gib": 64, "labels": {"zone": "a"}})
    assert job["queue"] == "gpu"
    assert claim(service, job, worker_id)["devices"] == ["GPU-w1-0", "GPU-w1-1"]


def test_jobs_at_once_share_devices_and_memory(service: Any, submit: Callable[..., Any]) -> None:
    worker_id = register(service, "w1", 3, slots=3)
    first, second, third = (
        submit(service, resources={"gpus": n, "memory_gib": gib}) for n, gib in ((1, 40), (1, 10), (1, 20))
    )
    lease = claim(service, first, worker_id)
    assert lease["devices"] == ["GPU-w1-0"]
    assert claim(service, second, worker_id)["devices"] == ["GPU-w1-1"]
    assert "14 GiB free" in claim(service, third, worker_id, expect=409)["detail"]
    ended = {"lease_token": lease["lease_token"], "state": "finished"}
    service.api("POST", f"/jobs/{first['id']}/finish", json=ended)
    assert claim(service, third, worker_id)["devices"] == ["GPU-w1-0"]  # given back, and given again
    assert sorted(shown(service, "w1")["jobs"]) == sorted([second["id"], third["id"]])


def test_a_message_that_reached_the_wrong_worker_is_passed_on(
    service: Any, submit: Callable[..., Any], sql: Callable[..., Any]
) -> None:
    small, _large = register(service, "small", 1), register(service, "large", 4)
    job = submit(service, resources={"gpus": 4})
    assert sql("SELECT queue FROM outbox") == [("gpu",)]
    claim(service, job, small, expect=409)
    assert sql("SELECT queue FROM outbox ORDER BY id") == [("gpu",), ("worker.large",)]


def test_a_job_that_nobody_could_take_goes_to_the_first_worker_that_can(
    service: Any, submit: Callable[..., Any], sql: Callable[..., Any]
) -> None:
    submit(service, resources={"gpus": 4})
    sql("UPDATE jobs SET published_at = now() - interval '20 seconds'")
    register(service, "small", 1)
    assert sql("SELECT queue FROM outbox") == [("gpu",)]
    register(service, "large", 4)
    assert sql("SELECT queue FROM outbox ORDER BY id") == [("gpu",), ("worker.large",)]


def test_a_named_queue_is_kept_apart(service: Any, submit: Callable[..., Any]) -> None:
    job = submit(service, queue="team-a")
    assert job["queue"] == "team-a"
    everyone, team = register(service, "everyone"), register(service, "team", 0, queues=["team-a"])
    assert "queue 'team-a'" in claim(service, job, everyone, expect=409)["detail"]
    claim(service, job, team)
    body = {"recipe": {"name": "tiny"}, "queue": "worker.team"}
    assert service.api("POST", "/jobs", expect=422, json=body)["errors"][0]["field"] == "queue"


def test_gpus_of_a_killed_worker_s_job_are_not_given_twice(service: Any, submit: Callable[..., Any]) -> None:
    job, other = (submit(service, resources={"gpus": 1}) for _ in range(2))
    claim(service, job, register(service, "w1", 1))
    again = register(service, "w1", 1)  # killed and started again; the job's lease still runs
    assert "0 free" in claim(service, other, again, expect=409)["detail"]
