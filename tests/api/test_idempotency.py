from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

RUN = {"name": "run-1", "recipe": "recipe-a", "benchmark": "held-out", "compute_unit": "gpu_hours"}
TINY = {"recipe": {"name": "tiny"}}


def post(service: Any, path: str, body: dict[str, Any], key: str = "key-1") -> Any:
    return service.request("POST", path, json=body, headers={"Idempotency-Key": key})


def test_a_launch_that_is_sent_again_starts_nothing_more(service: Any) -> None:
    first = post(service, "/jobs", TINY)
    again = post(service, "/jobs", TINY)
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.json() == first.json()
    assert again.headers["idempotency-replayed"] == "true"
    assert "idempotency-replayed" not in first.headers
    assert len(service.api("GET", "/jobs")["items"]) == 1
    assert post(service, "/jobs", TINY, key="key-2").json()["id"] != first.json()["id"]


def test_a_key_belongs_to_one_request(service: Any) -> None:
    post(service, "/jobs", TINY)
    for path, body in (("/jobs", {**TINY, "name": "other"}), ("/runs", RUN)):
        answer = post(service, path, body)
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["field"] == "Idempotency-Key"
    assert len(service.api("GET", "/runs")["items"]) == 1


def test_a_key_belongs_to_one_caller(service: Any) -> None:
    made = service.api("POST", "/tokens", json={"name": "ci", "scopes": ["admin"]})
    first = post(service, "/jobs", TINY).json()
    headers = {"Idempotency-Key": "key-1", "Authorization": f"Bearer {made['token']}"}
    other = service.client.post(f"{service.url}/api/v1/jobs", json=TINY, headers=headers).json()
    assert other["id"] != first["id"]


def test_a_refused_request_does_not_use_its_key_up(service: Any) -> None:
    assert post(service, "/jobs", {"recipe": {"name": "tiny", "steps": -1}}).status_code == 422
    assert post(service, "/jobs", TINY).status_code == 201


def test_the_first_status_is_kept(service: Any) -> None:
    service.api("POST", "/runs", expect=201, json=RUN)
    assert [post(service, "/runs", RUN).status_code for _ in range(2)] == [200, 200]


def test_gates_and_baselines_too(service: Any, add_run: Callable[..., Any]) -> None:
    add_run(service, "run-1", n=20)
    gate = {"candidate": "run-1", "baseline": 0.6}
    assert post(service, "/gates", gate).json() == post(service, "/gates", gate).json()
    assert len(service.api("GET", "/gates")["items"]) == 1
    pinned = {"name": "b", "pass_rate": 0.6}
    assert [post(service, "/baselines", pinned, "key-2").status_code for _ in range(2)] == [201, 201]


def test_of_many_at_once_one_does_the_work(service: Any) -> None:
    answers: list[Any] = []
    threads = [
        threading.Thread(target=lambda: answers.append(post(service, "/jobs", TINY))) for _ in range(12)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {answer.status_code for answer in answers} <= {201, 409}
    assert all(a.json()["code"] == "in_progress" for a in answers if a.status_code == 409)
    assert len({a.json()["id"] for a in answers if a.status_code == 201}) == 1
    assert len(service.api("GET", "/jobs")["items"]) == 1


def test_odd_keys_are_refused(service: Any) -> None:
    for key in ("x" * 256, "a\tb"):
        assert post(service, "/jobs", TINY, key=key).status_code == 422


def test_a_key_outlives_the_process(start_process: Callable[..., Any]) -> None:
    service = start_process()
    headers = {"Idempotency-Key": "key-1", "Authorization": f"Bearer {service.token}"}
    url = f"{service.url}/api/v1/jobs"
    first = service.client.post(url, json=TINY, headers=headers).json()
    service.kill()
    service.start()
    assert service.client.post(url, json=TINY, headers=headers).json() == first
