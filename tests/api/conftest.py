"""Shared arrangements of the service's tests."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest

RUN = {"recipe": "recipe-a", "benchmark": "held-out", "compute_unit": "gpu_hours"}


def sigmoid(compute: float, A: float = 0.65, B: float = 1.2, Cmid: float = 2000.0, R0: float = 0.25) -> float:
    """The law of the paper, written down here once more."""
    return R0 + (A - R0) / (1 + (Cmid / compute) ** B)


@pytest.fixture
def add_run() -> Callable[..., dict[str, Any]]:
    """Makes a run; with `n`, adds that many evaluations along the law with the given parameters."""

    def add(service: Any, name: str, n: int = 0, law: dict[str, float] | None = None, **fields: Any) -> Any:
        run = service.api("POST", "/runs", json={"name": name, **RUN, **fields})
        unit = run["compute_unit"]
        items = [
            {
                "step": i,
                "compute": {unit: 1000.0 * i},
                "pass_rate": round(sigmoid(1000.0 * i, **(law or {})), 6),
            }
            for i in range(1, n + 1)
        ]
        if items:
            service.api("POST", f"/runs/{name}/evaluations", json={"evaluations": items})
        return run

    return add


@pytest.fixture
def sql(request: pytest.FixtureRequest) -> Callable[..., list[Any]]:
    """Runs one statement on the test's database, past the service."""
    if "service" in request.fixturenames:
        database_url = request.getfixturevalue("service").database_url
    else:
        database_url = request.getfixturevalue("database_url")

    def run(statement: str, *values: Any) -> list[Any]:
        with psycopg.connect(database_url.replace("+psycopg", ""), autocommit=True) as connection:
            cursor = connection.execute(statement, values)  # type: ignore[call-overload]
            return cursor.fetchall() if cursor.description else []

    return run


@pytest.fixture
def submit() -> Callable[..., dict[str, Any]]:
    """Submits the smallest valid recipe."""

    def do(service: Any, **body: Any) -> Any:
        return service.api("POST", "/jobs", expect=201, json={"recipe": {"name": "tiny"}, **body})

    return do


@pytest.fixture
def claim() -> Callable[..., dict[str, Any]]:
    def do(service: Any, job: dict[str, Any], attempt: int = 1, runner: str = "host-1") -> Any:
        body = {"attempt": attempt, "runner": runner}
        return service.api("POST", f"/jobs/{job['id']}/claim", expect=200, json=body)

    return do


@pytest.fixture
def wait_until() -> Callable[..., Any]:
    """Calls until the answer is true; returns it. For what background tasks do in their own time."""

    def wait(question: Callable[[], Any], timeout_s: float = 15.0) -> Any:
        deadline = time.monotonic() + timeout_s
        while not (answer := question()):
            assert time.monotonic() < deadline, "still not so"
            time.sleep(0.05)
        return answer

    return wait


class Process:
    """The API as a process of its own, for tests that kill it."""

    def __init__(self, environment: dict[str, str]) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.environment = environment
        self.log = Path(environment["RLCAST_DATA_DIR"]) / f"api-{self.port}.log"
        self.url = f"http://127.0.0.1:{self.port}"
        self.client = httpx2.Client(timeout=20, trust_env=False, verify=False)
        self.start()

    def start(self) -> None:
        argv = [sys.executable, "-m", "uvicorn", "api.app:create_app", "--factory", "--log-level", "warning"]
        argv += ["--port", str(self.port), "--timeout-graceful-shutdown", "2"]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(argv, env=self.environment, stderr=log)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            assert self.process.poll() is None, "the service ended at its start"
            try:
                if self.client.get(f"{self.url}/livez").status_code == 200:
                    return
            except httpx2.TransportError:
                time.sleep(0.05)
        raise AssertionError("the service did not start in 60 s")

    @property
    def token(self) -> str:
        return Path(self.environment["RLCAST_TOKEN_FILE"]).read_text().strip()

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def terminate(self, timeout_s: float = 10.0) -> int:
        """Asks it to stop; returns the signal that it says it ended by, which uvicorn passes on."""
        self.process.terminate()
        return -self.process.wait(timeout_s)

    def request(self, method: str, path: str, **kwargs: Any) -> httpx2.Response:
        headers = {"Authorization": f"Bearer {self.token}"}
        url = f"{self.url}/api/v1{path}"
        return self.client.request(method, url, headers=headers, **kwargs)

    def api(self, method: str, path: str, **kwargs: Any) -> Any:
        answer = self.request(method, path, **kwargs)
        assert answer.is_success, answer.text
        return answer.json()


@pytest.fixture
def start_process(database_url: str, tmp_path: Path) -> Iterator[Callable[..., Process]]:
    """Starts API processes over the test's database; several share token and data."""
    started: list[Process] = []

    def start(**settings: str) -> Process:
        environment = {
            **os.environ,
            "RLCAST_DATABASE_URL": database_url,
            "RLCAST_BROKER_URL": "redis://127.0.0.1:1/0",
            "RLCAST_TOKEN_FILE": str(tmp_path / "token"),
            "RLCAST_DATA_DIR": str(tmp_path),
            **{f"RLCAST_{name.upper()}": value for name, value in settings.items()},
        }
        started.append(Process(environment))
        return started[-1]

    yield start
    for process in started:
        process.kill()


@pytest.fixture
def read_events() -> Callable[..., list[dict[str, Any]]]:
    """Opens a stream and returns its first `n` events as `{"id", "event", "data"}`."""

    def read(
        service: Any, n: int, then: Callable[[], Any] | None = None, **options: Any
    ) -> list[dict[str, Any]]:
        headers = {"Authorization": f"Bearer {service.token}", **options.pop("headers", {})}
        found: list[dict[str, Any]] = []
        url = f"{service.url}/api/v1/events"
        with (
            httpx2.Client(trust_env=False, timeout=15) as client,
            client.stream("GET", url, headers=headers, **options) as answer,
        ):
            assert answer.status_code == 200, answer.read()
            if then is not None:
                then()
            current: dict[str, Any] = {}
            deadline = time.monotonic() + 20
            for line in answer.iter_lines():
                assert time.monotonic() < deadline, f"only {len(found)} of {n} events: {found[-5:]}"
                name, _, value = line.partition(": ")
                if name in ("id", "event"):
                    current[name] = value
                elif name == "data":
                    current["data"] = json.loads(value)
                elif not line and current:
                    found.append(current)
                    current = {}
                    if len(found) == n:
                        return found
        return found

    return read
