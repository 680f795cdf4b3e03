from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import Any

import pytest


def item(step: int, pass_rate: float = 0.5, **more: Any) -> dict[str, Any]:
    return {"step": step, "compute": {"gpu_hours": 10.0 * step}, "pass_rate": pass_rate, **more}


def send(service: Any, items: list[dict[str, Any]], expect: int = 200, **more: Any) -> Any:
    body = {"evaluations": items, **more}
    return service.api("POST", "/runs/run-1/evaluations", expect=expect, json=body)


def stored(service: Any) -> list[tuple[int, float, int]]:
    page = service.api("GET", "/runs/run-1/evaluations", params={"limit": 10_000})
    assert page["next_cursor"] is None
    return [(e["step"], e["pass_rate"], e["attempt"]) for e in page["items"]]


@pytest.fixture
def run(service: Any, add_run: Callable[..., Any]) -> dict[str, Any]:
    return dict(add_run(service, "run-1"))


def test_a_batch_sent_twice_is_stored_once(service: Any, run: dict[str, Any]) -> None:
    batch = [item(i, i / 10, n_prompts=200, n_samples=4, solved=[4, 0, 3]) for i in range(5)]
    first = send(service, batch)
    assert (first["created"], first["duplicates"], first["superseded"]) == (5, 0, 0)
    again = send(service, batch)
    assert (again["created"], again["duplicates"]) == (0, 5)
    assert [r["status"] for r in again["results"]] == ["duplicate"] * 5
    assert stored(service) == [(i, i / 10, 1) for i in range(5)]
    found = service.api("GET", "/runs/run-1")
    assert found["n_evaluations"] == 5
    assert found["last_evaluation_at"] is not None


def test_the_clock_does_not_make_a_duplicate_a_conflict(service: Any, run: dict[str, Any]) -> None:
    send(service, [item(1, measured_at="2026-01-01T00:00:00Z")])
    assert send(service, [item(1)])["duplicates"] == 1


def test_order_does_not_matter(service: Any, run: dict[str, Any]) -> None:
    items = [item(i, i / 100) for i in range(60)]
    shuffled = random.Random(0).sample(items, 60)
    for start in range(0, 60, 7):
        send(service, shuffled[max(0, start - 3) : start + 7])  # overlapping, as after a lost answer
    assert stored(service) == [(i, i / 100, 1) for i in range(60)]


def test_another_value_of_the_same_attempt_is_refused(service: Any, run: dict[str, Any]) -> None:
    send(service, [item(1, 0.5)])
    problem = send(service, [item(2, 0.6), item(1, 0.51)], expect=409)
    assert problem["code"] == "evaluation_conflict"
    assert [r["status"] for r in problem["results"]] == ["created", "rejected"]
    assert "another pass_rate" in problem["results"][1]["reason"]
    assert stored(service) == [(1, 0.5, 1)]  # nothing of the refused batch


@pytest.mark.parametrize(
    "change",
    [
        {"compute": {"gpu_hours": 11.0}},
        {"compute": {"gpu_hours": 10.0, "tokens": 5.0}},
        {"n_prompts": 7},
        {"truncated": 0.5},
    ],
)
def test_every_part_of_a_value_counts(service: Any, run: dict[str, Any], change: dict[str, Any]) -> None:
    send(service, [item(1)])
    send(service, [{**item(1), **change}], expect=409)


def test_a_higher_attempt_supersedes_and_the_old_value_is_kept(
    service: Any, run: dict[str, Any], sql: Callable[..., Any]
) -> None:
    send(service, [item(1, 0.1), item(2, 0.2)])
    answer = send(service, [item(2, 0.25), item(3, 0.3)], attempt=2)
    assert (answer["created"], answer["superseded"]) == (1, 1)
    assert stored(service) == [(1, 0.1, 1), (2, 0.25, 2), (3, 0.3, 2)]
    assert sql("SELECT step, attempt, pass_rate FROM superseded_evaluations") == [(2, 1, 0.2)]
    assert service.api("GET", "/runs/run-1")["n_evaluations"] == 3
    problem = send(service, [item(2, 0.2)], expect=409, attempt=1)
    assert "attempt 2 has already measured step 2" in problem["results"][0]["reason"]


def test_a_batch_is_judged_item_by_item(service: Any, run: dict[str, Any]) -> None:
    twice = send(service, [item(1), item(1)])
    assert [r["status"] for r in twice["results"]] == ["created", "duplicate"]
    send(service, [item(2, 0.1), item(2, 0.2)], expect=409)
    assert stored(service) == [(1, 0.5, 1)]


def test_benchmarks_are_kept_apart(service: Any, run: dict[str, Any]) -> None:
    send(service, [item(1, 0.5), item(1, 0.7, benchmark="other")])
    page = service.api("GET", "/runs/run-1/evaluations", params={"benchmark": "other"})
    assert [e["pass_rate"] for e in page["items"]] == [0.7]
    assert len(stored(service)) == 2


def test_pages_return_every_evaluation(service: Any, run: dict[str, Any]) -> None:
    send(service, [item(i, benchmark=b) for i in range(20) for b in ("a", "b", "ß")])
    seen: list[tuple[int, str]] = []
    cursor = None
    while True:
        query = {"limit": 7, **({"cursor": cursor} if cursor else {})}
        page = service.api("GET", "/runs/run-1/evaluations", params=query)
        seen += [(e["step"], e["benchmark"]) for e in page["items"]]
        cursor = page["next_cursor"]
        if not cursor:
            break
    assert len(seen) == 60
    assert len(set(seen)) == 60
    assert [step for step, _ in seen] == sorted(step for step, _ in seen)
    after = service.api("GET", "/runs/run-1/evaluations", params={"after_step": 18})
    assert {e["step"] for e in after["items"]} == {19}


def test_concurrent_batches_of_one_run_lose_nothing(service: Any, run: dict[str, Any]) -> None:
    items = [item(i, i / 1000) for i in range(200)]
    answers: list[int] = []

    def push(batch: list[dict[str, Any]]) -> None:
        body = {"evaluations": batch}
        answer = service.request("POST", "/runs/run-1/evaluations", json=body)
        answers.append(answer.status_code)

    batches = [items, items[::-1], items[:100], items[100:][::-1]] * 3
    threads = [threading.Thread(target=push, args=(batch,)) for batch in batches]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [200] * 12
    assert stored(service) == [(i, i / 1000, 1) for i in range(200)]
    assert service.api("GET", "/runs/run-1")["n_evaluations"] == 200


def test_limits_of_a_batch(service: Any, run: dict[str, Any]) -> None:
    assert send(service, [item(i) for i in range(1000)])["created"] == 1000
    for batch in ([item(i) for i in range(1001)], []):
        problem = send(service, batch, expect=422)
        assert problem["errors"][0]["field"] == "evaluations"


def test_a_large_body_is_refused_with_and_without_a_length(service: Any, run: dict[str, Any]) -> None:
    body = b'{"evaluations": [' + b" " * 1_100_000 + b"]}"
    headers = {"content-type": "application/json"}
    for content in (body, (body[i : i + 50_000] for i in range(0, len(body), 50_000))):
        answer = service.request("POST", "/runs/run-1/evaluations", content=content, headers=headers)
        assert answer.status_code == 413
        assert "1 MB" in answer.json()["detail"]
    assert stored(service) == []


def test_the_unit_of_the_run_must_be_there(service: Any, run: dict[str, Any]) -> None:
    problem = send(service, [{**item(1), "compute": {"tokens": 5.0}}], expect=422)
    assert problem["errors"] == [
        {"field": "evaluations.0.compute", "message": "must hold gpu_hours, the unit of run 'run-1'"}
    ]


def test_a_run_without_a_job_takes_no_lease(service: Any, run: dict[str, Any]) -> None:
    lease = {"lease_token": "01a2317e-594a-466b-b70e-0b1b7e2c0989"}
    assert send(service, [item(1)], expect=409, **lease)["code"] == "wrong_job"
