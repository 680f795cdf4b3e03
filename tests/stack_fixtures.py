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

import psutil
import pytest

from rlcast.client import Client


class Up:
    """One `rlcast up` process."""

    def __init__(self, folder: Path, *arguments: str, **env: str) -> None:
        self.folder = folder
        self.log = folder.parent / f"{folder.name}.up.log"
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
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
    *arguments: str, env: dict[str, str] | None = None, timeout_s: float = 120.0
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "rlcast", *arguments],
        env=env,
        capture_output=True,
        text=True,
        timeout=timeout_s,
    )


@pytest.fixture
def rlcast() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the command line as a user would; returns the finished process with its output."""
    return rlcast_command
