"""What the supervisor does with a trainer's events, against the real service."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from rlcast.client import Client
from runners.allocation import Allocation
from runners.process import WorkFolder, describe_exit, trainer_environment
from runners.supervisor import Fenced, Lease, Supervisor


def evaluation(step: int, pass_rate: float) -> dict[str, Any]:
    return {"step": step, "compute": {"cpu_hours": 0.1 * step}, "pass_rate": pass_rate}


def write_events(folder: WorkFolder, evaluations: list[dict[str, Any]]) -> None:
    folder.out.mkdir(parents=True, exist_ok=True)
    lines = [
        json.dumps({"sequence": i, "kind": "evaluation", "data": item})
        for i, item in enumerate(evaluations, 1)
    ]
    folder.events.write_text("\n".join(lines) + "\n")


@pytest.fixture
def claimed(service: Any, tmp_path: Path):
    """A claimed job, its work folder, and a maker of supervisors over it."""
    client = Client(service.url, service.token)
    job = client.submit({"name": "tiny"})
    lease = Lease.of(client.claim(job["id"], 1, "here"))
    folder = WorkFolder(tmp_path / "job")
    folder.out.mkdir(parents=True)

    def supervisor() -> Supervisor:
        return Supervisor(client, folder, lease, threading.Event(), Allocation(0, 1))

    return client, job, folder, supervisor


def stored(client: Client, job: dict[str, Any]) -> dict[int, float]:
    return {item["step"]: item["pass_rate"] for item in client.evaluations(job["run_name"])}


def test_events_reach_the_service_once_whatever_is_sent_again(claimed):
    client, job, folder, supervisor = claimed
    write_events(folder, [evaluation(0, 0.1), evaluation(5, 0.2)])
    supervisor()._deliver()
    folder.delivered.unlink()  # crashed before the delivery was noted
    supervisor()._deliver()
    assert stored(client, job) == {0: 0.1, 5: 0.2}


def test_a_point_that_is_refused_is_kept_and_holds_nothing_back(claimed):
    client, job, folder, supervisor = claimed
    write_events(folder, [evaluation(0, 0.1), evaluation(5, 1.7), evaluation(10, 0.3)])
    first = supervisor()
    first._deliver()
    assert stored(client, job) == {0: 0.1, 10: 0.3}
    [kept] = [json.loads(line) for line in folder.refused.read_text().splitlines()]
    assert kept["evaluation"]["step"] == 5
    assert "pass_rate" in kept["reason"]
    assert first.spool.pending() == []


def test_an_attempt_that_was_superseded_stops(claimed):
    client, job, folder, supervisor = claimed
    old = supervisor()
    client.finish(job["id"], old.lease.token, "released")
    client.claim(job["id"], 2, "elsewhere")
    write_events(folder, [evaluation(0, 0.1)])
    with pytest.raises(Fenced):
        old._deliver()
    with pytest.raises(Fenced):
        old._send_heartbeat()
    assert stored(client, job) == {}


def test_a_trainer_sees_no_secret():
    environ = {
        "PATH": "/bin",
        "CUDA_VISIBLE_DEVICES": "0",
        "RLCAST_TOKEN": "secret",
        "RLCAST_DATABASE_URL": "secret",
        "RLCAST_BROKER_URL": "secret",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "LD_PRELOAD": "evil.so",
    }
    seen = trainer_environment(environ)
    assert seen["PATH"] == "/bin"
    assert seen["CUDA_VISIBLE_DEVICES"] == "0"
    assert "secret" not in seen.values()
    assert "LD_PRELOAD" not in seen


def test_exits_in_words():
    assert describe_exit(3) == "exit code 3"
    assert describe_exit(-9) == "killed by SIGKILL"
