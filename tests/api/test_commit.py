"""An answer with 2xx means that it is stored; everything else is safe to send again."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import httpx2


def test_a_commit_that_fails_is_never_a_success(
    service: Any, add_run: Callable[..., Any], sql: Callable[..., Any]
) -> None:
    """A deferred constraint makes the insert succeed and only COMMIT fail."""
    sql("""CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
           $$ BEGIN RAISE EXCEPTION 'refused at commit'; END $$""")
    sql("""CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON runs DEFERRABLE INITIALLY DEFERRED
           FOR EACH ROW EXECUTE FUNCTION refuse()""")
    body = {"name": "run-1", "recipe": "r", "benchmark": "b", "compute_unit": "gpu_hours"}
    answer = service.request("POST", "/runs", json=body)
    assert answer.status_code == 500
    assert answer.headers["content-type"] == "application/problem+json"
    assert "refused" not in answer.text  # nothing of the database's words gets out
    sql("DROP TRIGGER refuse ON runs")
    assert service.api("GET", "/runs")["items"] == []
    service.api("POST", "/runs", expect=201, json=body)


def test_a_connection_that_breaks_is_a_503_and_heals(
    service: Any, add_run: Callable[..., Any], sql: Callable[..., Any]
) -> None:
    add_run(service, "run-1")
    sql("""CREATE FUNCTION hang_up() RETURNS trigger LANGUAGE plpgsql AS
           $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$""")
    sql("""CREATE CONSTRAINT TRIGGER hang_up AFTER INSERT ON evaluations DEFERRABLE INITIALLY DEFERRED
           FOR EACH ROW EXECUTE FUNCTION hang_up()""")
    batch = {"evaluations": [{"step": 1, "compute": {"gpu_hours": 1}, "pass_rate": 0.5}]}
    answer = service.request("POST", "/runs/run-1/evaluations", json=batch)
    assert (answer.status_code, answer.json()["code"]) == (503, "database_unavailable")
    assert answer.headers["retry-after"]
    sql("DROP TRIGGER hang_up ON evaluations")
    assert service.api("POST", "/runs/run-1/evaluations", json=batch)["created"] == 1


def test_killing_the_service_loses_no_acknowledged_point(
    start_process: Callable[..., Any], add_run: Callable[..., Any]
) -> None:
    service = start_process()
    service.api(
        "POST",
        "/runs",
        json={"name": "run-1", "recipe": "r", "benchmark": "b", "compute_unit": "gpu_hours"},
    )
    acknowledged: set[int] = set()
    stop = threading.Event()

    def write(first: int) -> None:
        step = first
        while not stop.is_set():
            body = {"evaluations": [{"step": step, "compute": {"gpu_hours": step}, "pass_rate": 0.5}]}
            try:
                answer = service.request("POST", "/runs/run-1/evaluations", json=body)
            except httpx2.TransportError:
                time.sleep(0.05)
                continue  # not known: send the same again
            assert answer.status_code == 200, answer.text
            acknowledged.add(step)
            step += 4

    threads = [threading.Thread(target=write, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    time.sleep(1.0)
    service.kill()
    service.start()
    time.sleep(0.5)
    stop.set()
    for thread in threads:
        thread.join()
    items = service.api("GET", "/runs/run-1/evaluations", params={"limit": 10_000})["items"]
    steps = [item["step"] for item in items]
    assert len(acknowledged) > 20
    assert set(steps) >= acknowledged
    assert len(steps) == len(set(steps)) == service.api("GET", "/runs/run-1")["n_evaluations"]


def test_a_restart_loses_nothing(start_process: Callable[..., Any]) -> None:
    service = start_process()
    run = {"name": "run-1", "recipe": "r", "benchmark": "b", "compute_unit": "gpu_hours"}
    made = service.api("POST", "/runs", json=run)
    job = service.api("POST", "/jobs", json={"recipe": {"name": "tiny"}})
    lease = service.api("POST", f"/jobs/{job['id']}/claim", json={"attempt": 1, "runner": "host"})
    token = service.token
    assert service.terminate() == signal.SIGTERM
    service.start()
    assert service.token == token
    assert service.api("GET", "/runs/run-1") == made
    beat = {"lease_token": lease["lease_token"], "progress": {"step": 1}}
    assert service.api("POST", f"/jobs/{job['id']}/heartbeat", json=beat)["cancel"] is False
    assert service.api("GET", f"/jobs/{job['id']}")["attempt"] == 1
