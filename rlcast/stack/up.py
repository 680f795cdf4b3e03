"""Starts and supervises the whole stack: database, broker, migrations, API with dashboard, worker."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from rlcast import __version__
from rlcast.errors import InputError, RlcastError
from rlcast.stack.broker import USER
from rlcast.stack.folder import DataFolder, FolderLock
from rlcast.stack.postgres import EmbeddedPostgres
from rlcast.stack.processes import Child, tail

DEFAULT_PORT = 8700
_API_START_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class UpOptions:
    """What `rlcast up` was asked for.

    `port` None takes 8700 or the next free one; `jobs_at_once` is how many training jobs the worker
    runs in parallel, 0 starts no worker.
    """

    folder: Path
    host: str = "127.0.0.1"
    port: int | None = None
    jobs_at_once: int = 1


def free_port(host: str, wanted: int | None) -> int:
    """`wanted`, or the first free port from 8700. Raises `InputError` when `wanted` is taken."""
    for port in [wanted] if wanted else range(DEFAULT_PORT, DEFAULT_PORT + 100):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
                return int(port)
            except OSError:
                continue
    raise InputError(f"--port {wanted or DEFAULT_PORT} is taken on {host}; choose another", "--port")


def stop_leftovers(state: dict[str, Any] | None) -> list[str]:
    """Ends the processes of a killed `up`, as its state file names them. Returns their names.

    A process id is trusted only with its start time: ids are used again.
    """
    import psutil

    ended = []
    for child in (state or {}).get("children", []):
        try:
            process = psutil.Process(int(child["pid"]))
            if abs(process.create_time() - float(child["started"])) > 2.0:
                continue
            # PostgreSQL takes SIGINT for "stop now, cleanly"; SIGTERM would wait for its clients.
            process.send_signal(signal.SIGINT if child["name"] == "PostgreSQL" else signal.SIGTERM)
            try:
                process.wait(20)
            except psutil.TimeoutExpired:
                process.kill()
            ended.append(str(child["name"]))
        except (psutil.NoSuchProcess, KeyError, ValueError):
            continue
    return ended


class Stack:
    """The running processes over one data folder. Use as a context manager; leaving it stops all."""

    def __init__(self, options: UpOptions, say: Callable[[str], None] = lambda text: None) -> None:
        self.options = options
        self.folder = DataFolder(options.folder.expanduser().resolve())
        self.say = say
        self.lock = FolderLock(self.folder)
        self.children: list[Child] = []
        self.postgres: EmbeddedPostgres | None = None
        self.stopping = threading.Event()
        self.url = ""

    def __enter__(self) -> Stack:
        self.folder.create()
        self.lock.acquire()
        try:
            left = stop_leftovers(self.folder.read_state())
            if left:
                self.say(f"ended what a killed run had left: {', '.join(left)}")
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.stop()

    # -- starting ------------------------------------------------------------------------------

    def _start(self) -> None:
        env = {
            "RLCAST_DATABASE_URL": self._database(),
            "RLCAST_BROKER_URL": self._broker(),
            "RLCAST_TOKEN_FILE": str(self.folder.token_file),
            "RLCAST_DATA_DIR": str(self.folder.root),
            "RLCAST_HOME": str(self.folder.root),
            "PYTHONUNBUFFERED": "1",
        }
        if "RLCAST_BROKER_URL" not in os.environ:
            # The embedded broker starts empty: jobs that were queued before are woken again soon.
            env["RLCAST_RESEND_S"] = os.environ.get("RLCAST_RESEND_S", "10")
        self._migrate(env)
        port = free_port(self.options.host, self.options.port)
        self.url = f"http://{self.options.host}:{port}"
        env["RLCAST_URL"] = self.url
        self._add(
            Child(
                name="API",
                argv=[
                    *(sys.executable, "-m", "uvicorn", "web.app:create_app", "--factory"),
                    *("--host", self.options.host, "--port", str(port), "--timeout-graceful-shutdown", "5"),
                    "--no-access-log",
                ],
                log=self.folder.logs / "api.log",
                env=env,
            )
        )
        self._wait_for_api()
        if self.options.jobs_at_once:
            self._add(worker_child(self.folder, env, self.options.jobs_at_once))
        self._write_state()

    def _add(self, child: Child) -> None:
        child.start()
        self.children.append(child)
        self._write_state()

    def _database(self) -> str:
        given = os.environ.get("RLCAST_DATABASE_URL")
        if given:
            self.say("database: the one of RLCAST_DATABASE_URL")
            return given
        self.postgres = EmbeddedPostgres(self.folder.root / "postgres", self.folder.logs / "postgres.log")
        self.children.append(self.postgres.child)
        self.postgres.start()
        self._write_state()
        self.say(f"database: embedded PostgreSQL in {self.postgres.data}")
        return self.postgres.url

    def _broker(self) -> str:
        given = os.environ.get("RLCAST_BROKER_URL")
        if given:
            self.say("broker: the one of RLCAST_BROKER_URL")
            return given
        folder = self.folder.root / "valkey"
        folder.mkdir(mode=0o700, exist_ok=True)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        password = secrets.token_urlsafe(24)
        self._add(
            Child(
                name="Valkey",
                argv=[sys.executable, "-m", "rlcast.stack.broker", str(folder), str(port)],
                log=self.folder.logs / "valkey.log",
                env={"RLCAST_BROKER_PASSWORD": password},
            )
        )
        self.say(f"broker: embedded Valkey on 127.0.0.1:{port}")
        return f"redis://{USER}:{password}@127.0.0.1:{port}/0"

    def _migrate(self, env: dict[str, str]) -> None:
        done = subprocess.run(
            [sys.executable, "-m", "migrations", "upgrade"],
            env={**os.environ, **env},
            capture_output=True,
            text=True,
        )
        if done.returncode:
            output = "\n".join((done.stderr or done.stdout).splitlines()[-15:])
            raise RlcastError(f"the database could not be migrated:\n{output}")

    def _wait_for_api(self) -> None:
        import httpx2

        api = self.children[-1]
        deadline = time.monotonic() + _API_START_TIMEOUT_S
        while time.monotonic() < deadline:
            with contextlib.suppress(httpx2.TransportError):
                if httpx2.get(f"{self.url}/livez", timeout=2.0).status_code == 200:
                    return
            if not api.running():
                break
            time.sleep(0.1)
        raise RlcastError(f"the API did not start; the end of {api.log}:\n{tail(api.log)}")

    def _write_state(self) -> None:
        import psutil

        children = []
        for child in self.children:
            if child.pid and child.running():
                with contextlib.suppress(psutil.NoSuchProcess):
                    started = psutil.Process(child.pid).create_time()
                    children.append({"name": child.name, "pid": child.pid, "started": started})
        self.folder.write_state(
            {"pid": os.getpid(), "url": self.url, "version": __version__, "children": children}
        )

    # -- running -------------------------------------------------------------------------------

    def watch(self) -> None:
        """Keeps every process alive until `stopping` is set; raises when one cannot be kept."""
        while not self.stopping.wait(0.5):
            self.revive()

    def revive(self) -> None:
        """Starts again what has died since the last call."""
        for child in self.children:
            if child.revive():
                self.say(f"{child.name} had died and was started again")
                if self.postgres and child is self.postgres.child:
                    self.postgres.wait()
                self._write_state()

    def stop(self) -> None:
        """Stops everything, the last started first; leaves nothing running."""
        self.stopping.set()
        for child in reversed(self.children):
            child.stop()
        self.children.clear()
        if self.lock is not None:
            self.lock.release()


def worker_child(folder: DataFolder, env: dict[str, str], jobs_at_once: int) -> Child:
    """The worker that runs training jobs."""
    return Child(
        name="worker",
        argv=[
            *(sys.executable, "-m", "runners.worker", "--jobs-at-once", str(jobs_at_once)),
        ],
        log=folder.logs / "worker.log",
        env=env,
        grace_s=40.0,
    )


@contextlib.contextmanager
def stop_on_signals(stack: Stack) -> Iterator[None]:
    """Turns SIGINT and SIGTERM into an orderly stop of `stack`."""

    def ask(signal_number: int, frame: FrameType | None) -> None:
        if stack.stopping.is_set():
            return
        stack.stopping.set()

    previous = {s: signal.signal(s, ask) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
