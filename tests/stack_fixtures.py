"""A whole stack as a user starts it: `rlcast up` in a process of its own over a fresh folder."""

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

import psutil
import pytest

from rlcast.client import Client
from rlcast.errors import ServiceError, ServiceUnreachable


def free_port() -> int:
    """A port that the system gives out now: tests in parallel do not meet on it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Up:
    """One `rlcast up` process."""

    def __init__(self, folder: Path, *arguments: str, **env: str) -> None:
        self.folder = folder
        self.log = folder.parent / f"{folder.name}.up.log"
        self.port = free_port()
        argv = [
            sys.executable,
            "-m",
            "rlcast",
            "up",
            "--data",
            str(folder),
            "--port",
            str(self.port),
            *arguments,
        ]
        clean = {k: v for k, v in os.environ.items() if not k.startswith("RLCAST_") or k == "RLCAST_CACHE"}
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                argv, env={**clean, **env}, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def wait(self, timeout_s: float = 90.0) -> Up:
        deadline = time.monotonic() + timeout_s
        while "rlcast is up" not in self.log.read_text():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"rlcast up did not come up:\n{self.log.read_text()}")
            time.sleep(0.1)
        return self

    def client(self) -> Client:
        return Client(self.url, (self.folder / "token").read_text().strip())

    def env(self) -> dict[str, str]:
        return {**os.environ, "RLCAST_HOME": str(self.folder)}

    def child(self, name: str) -> psutil.Process:
        """The process that the state file lists under this name."""
        state = json.loads((self.folder / "up.json").read_text())
        [pid] = [child["pid"] for child in state["children"] if child["name"] == name]
        return psutil.Process(pid)

    def family(self) -> list[psutil.Process]:
        """The process and everything below it."""
        me = psutil.Process(self.process.pid)
        return [me, *me.children(recursive=True)]

    def stop(self, number: int = signal.SIGINT, timeout_s: float = 90.0) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(timeout_s)


@pytest.fixture
def start_up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Up]]:
    """Starts stacks; the same folder may be used again by passing it."""
    started: list[Up] = []

    def start(*arguments: str, folder: Path | None = None, **env: str) -> Up:
        up = Up(folder or tmp_path_factory.mktemp("stack") / "data", *arguments, **env)
        started.append(up)
        return up

    yield start
    for up in started:
        try:
            up.stop()
        except subprocess.TimeoutExpired:
            up.process.kill()


def rlcast_command(
    *arguments: str,
    env: dict[str, str] | None = None,
    timeout_s: float = 120.0,
    cwd: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "rlcast", *arguments],
        env=env,
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=timeout_s,
    )


@pytest.fixture
def rlcast() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the command line as a user would; returns the finished process with its output."""
    return rlcast_command


#: Trains for some ten seconds, with an evaluation several times a second.
RECIPE = """
name: fault-recipe
steps: 1200
seed: 3
model: {hidden_size: 32, layers: 1, heads: 2, kv_heads: 1, head_dim: 16, intermediate_size: 64,
        warm_start: {pass_rate: 0.05, max_steps: 400}}
task: {digits: 1, train_prompts: 20, heldout_prompts: 10}
sampling: {prompts_per_step: 8, samples_per_prompt: 8, max_new_tokens: 4}
evaluation: {every_steps: 20, samples_per_prompt: 4}
checkpoint: {every_steps: 100}
"""


@pytest.fixture
def small_recipe(tmp_path: Path) -> Path:
    path = tmp_path / "recipe.yaml"
    path.write_text(RECIPE)
    return path


class Watch:
    """Reads a job's evaluations again and again and remembers every point that was ever acknowledged."""

    def __init__(self, client: Client, job_id: str) -> None:
        self.client = client
        self.job_id = job_id
        self.seen: dict[int, float] = {}
        self.job: dict[str, Any] = {}

    def look(self) -> None:
        try:
            self.job = self.client.job(self.job_id)
            for item in self.client.evaluations(self.job["run_id"], limit=1000):
                self.seen.setdefault(item["step"], item["pass_rate"])
        except (ServiceUnreachable, ServiceError):
            pass

    def until(self, condition: Any, what: str, timeout_s: float = 150.0) -> None:
        deadline = time.monotonic() + timeout_s
        self.look()
        while not condition():
            assert time.monotonic() < deadline, f"waited in vain for {what}: {self.job}"
            assert self.job.get("state") != "failed", self.job
            time.sleep(0.2)
            self.look()
