"""Child processes that cannot outlive their parent and whose death is noticed."""

from __future__ import annotations

import contextlib
import multiprocessing as mp
import multiprocessing.connection
import os
import signal
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import psutil


class ChildDied(RuntimeError):
    """A child process ended without being asked to; the message names it."""


class TimedOut(RuntimeError):
    """A named wait took too long."""


class Child:
    """A spawned process that talks over one pipe. `target(connection, *arguments)` runs in it.

    The child ends itself the moment its parent is gone (also after kill -9), ignores Ctrl-C (the parent
    decides), and is killed by `close()`.

    What the child starts itself does not outlive it either, once `remember_descendants()` has seen it: an
    engine that is left alone would go on holding memory and cores (vllm-project/vllm issue 34643).

    may_have_children: whether it starts processes itself, which multiprocessing allows only to those that
    are not daemons: then `close()` must be called, or the parent waits for it when it ends.
    """

    def __init__(
        self, name: str, target: Callable[..., None], *arguments: Any, may_have_children: bool = False
    ) -> None:
        self.name = name
        self.connection, theirs = mp.get_context("spawn").Pipe()
        self._process = mp.get_context("spawn").Process(
            target=_run, args=(target, theirs, *arguments), name=name, daemon=not may_have_children
        )
        self._descendants: list[psutil.Process] = []
        self._process.start()
        theirs.close()  # so that reading ends when the child does

    def send(self, message: Any) -> None:
        try:
            self.connection.send(message)
        except (BrokenPipeError, ConnectionResetError) as error:
            raise self._death() from error

    def receive(self, timeout_s: float, waiting_for: str) -> Any:
        """The next message. Raises `TimedOut` or `ChildDied` instead of waiting for ever."""
        try:
            if not self.connection.poll(timeout_s):
                raise TimedOut(f"{self.name}: no {waiting_for} within {timeout_s:g} s")
            return self.connection.recv()
        except (EOFError, BrokenPipeError, ConnectionResetError) as error:
            raise self._death() from error

    @property
    def sentinel(self) -> int:
        """Becomes ready when the process ends, for `multiprocessing.connection.wait`."""
        return self._process.sentinel

    def check(self, patience_s: float = 0.0) -> None:
        """Raises `ChildDied` when the process has ended, or does within `patience_s`."""
        self._process.join(timeout=patience_s)
        if not self._process.is_alive():
            raise self._death()

    def _death(self) -> ChildDied:
        self._process.join(timeout=5)
        return ChildDied(f"{self.name}: the process died ({_describe(self._process.exitcode)})")

    def remember_descendants(self) -> None:
        """Notes the processes that the child has started, to be killed with it, also when it has died."""
        self._descendants = _descendants(self._process.pid)

    def close(self) -> None:
        """Kills the process: what it does holds nothing that must be saved."""
        if self._process.is_alive():
            self.remember_descendants()
        self._process.kill()
        self._process.join()
        _kill(self._descendants)
        self.connection.close()


def _describe(exit_code: int | None) -> str:
    if exit_code is not None and exit_code < 0:
        return f"killed by {signal.Signals(-exit_code).name}"
    return f"exit code {exit_code}"


def _run(target: Callable[..., None], connection: Connection, *arguments: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    target(connection, *arguments)


def _end_with_parent() -> None:
    parent = mp.parent_process()
    if parent is not None:
        mp.connection.wait([parent.sentinel])
    _kill(_descendants(os.getpid()))
    os._exit(1)


def _descendants(pid: int | None) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _kill(processes: list[psutil.Process]) -> None:
    """psutil compares start times, so that a process which took over a number is never killed."""
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
