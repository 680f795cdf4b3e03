from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import httpx2
import pytest


def test_a_stream_tells_what_happens(
    service: Any, add_run: Callable[..., Any], submit: Callable[..., Any], read_events: Callable[..., Any]
) -> None:
    def act() -> None:
        add_run(service, "run-1", n=3)
        submit(service)

    events = read_events(service, 4, then=act)
    assert [e["event"] for e in events] == ["run.created", "evaluation.created", "run.created", "job.changed"]
    run_id = service.api("GET", "/runs/run-1")["id"]
    assert events[1]["data"] == {"run_id": run_id, "run": "run-1", "benchmark": "held-out", "step": 3, "n": 3}
    assert events[3]["data"]["state"] == "queued"
    ids = [int(e["id"]) for e in events]
    assert ids == sorted(set(ids))


def test_a_stream_goes_on_where_it_broke_off(
    service: Any, add_run: Callable[..., Any], read_events: Callable[..., Any]
) -> None:
    for i in range(6):
        add_run(service, f"run-{i}")
    everything = read_events(service, 6, params={"after": 0})
    assert [e["data"]["run"] for e in everything] == [f"run-{i}" for i in range(6)]
    rest = read_events(service, 3, headers={"Last-Event-ID": everything[2]["id"]})
    assert rest == everything[3:]


def test_a_stream_of_some_runs(
    service: Any, add_run: Callable[..., Any], read_events: Callable[..., Any]
) -> None:
    for name in ("run-1", "run-2", "run-3"):
        add_run(service, name, n=1)
    events = read_events(service, 4, params={"after": 0, "runs": ["run-1", "run-3"]})
    assert [e["data"]["run"] for e in events] == ["run-1", "run-1", "run-3", "run-3"]
    assert service.api("GET", "/events", expect=404, params={"runs": "nothing"})["code"] == "not_found"


def test_nothing_refused_is_told(
    service: Any, add_run: Callable[..., Any], read_events: Callable[..., Any]
) -> None:
    add_run(service, "run-1", n=1)
    bad = {"evaluations": [{"step": 1, "compute": {"gpu_hours": 1}, "pass_rate": 0.9}]}
    service.api("POST", "/runs/run-1/evaluations", expect=409, json=bad)
    add_run(service, "run-2")
    events = read_events(service, 3, params={"after": 0})
    assert [(e["event"], e["data"]["run"]) for e in events] == [
        ("run.created", "run-1"),
        ("evaluation.created", "run-1"),
        ("run.created", "run-2"),
    ]


def test_concurrent_writers_are_read_in_commit_order(
    service: Any, add_run: Callable[..., Any], read_events: Callable[..., Any]
) -> None:
    """A reader that follows while many transactions overlap misses none."""

    def write() -> None:
        threads = [threading.Thread(target=add_run, args=(service, f"run-{i}")) for i in range(40)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    writer = threading.Thread(target=write)
    events = read_events(service, 40, then=writer.start)
    writer.join()
    assert {e["data"]["run"] for e in events} == {f"run-{i}" for i in range(40)}


@pytest.mark.parametrize("n_streams", [40])
def test_streams_hold_no_database_session(service: Any, sql: Callable[..., Any], n_streams: int) -> None:
    headers = {"Authorization": f"Bearer {service.token}"}
    limits = httpx2.Limits(max_connections=100)
    with httpx2.Client(trust_env=False, timeout=20, limits=limits, headers=headers) as client:
        streams = [client.stream("GET", f"{service.url}/api/v1/events") for _ in range(n_streams)]
        for stream in streams:
            assert stream.__enter__().status_code == 200
        assert service.app.state.broadcaster.n_streams == n_streams
        assert service.api("GET", "/runs")["items"] == []  # more streams than the pool has connections
        for stream in streams:
            stream.__exit__(None, None, None)
    deadline = time.monotonic() + 10
    while service.app.state.broadcaster.n_streams and time.monotonic() < deadline:
        time.sleep(0.05)
    assert service.app.state.broadcaster.n_streams == 0


def test_a_reader_far_behind_gets_everything_in_order(
    service: Any, add_run: Callable[..., Any], read_events: Callable[..., Any], sql: Callable[..., Any]
) -> None:
    """More events than a process keeps in memory, and new ones while the old are read."""
    sql("""INSERT INTO events (kind, data)
           SELECT 'run.created', jsonb_build_object('run', i) FROM generate_series(1, 3000) AS i""")
    events = read_events(service, 3001, params={"after": 0}, then=lambda: add_run(service, "last"))
    assert [e["data"]["run"] for e in events] == [*range(1, 3001), "last"]


def test_two_processes_share_their_events(
    start_process: Callable[..., Any], read_events: Callable[..., Any]
) -> None:
    one, two = start_process(), start_process()
    run = {"name": "run-1", "recipe": "r", "benchmark": "b", "compute_unit": "gpu_hours"}
    [event] = read_events(one, 1, then=lambda: two.api("POST", "/runs", json=run))
    assert event["data"]["run"] == "run-1"


def test_open_streams_do_not_hold_up_the_end(start_process: Callable[..., Any]) -> None:
    service = start_process()
    headers = {"Authorization": f"Bearer {service.token}"}
    with httpx2.stream("GET", f"{service.url}/api/v1/events", headers=headers, trust_env=False) as answer:
        assert answer.status_code == 200
        assert service.terminate(timeout_s=8) == signal.SIGTERM
