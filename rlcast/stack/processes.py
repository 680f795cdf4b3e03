"""Child processes that die with their parent, and come back when they die alone."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rlcast.errors import RlcastError

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def die_with_parent(signal_number: int) -> Callable[[], None]:
    """A `preexec_fn`: on Linux the kernel sends `signal_number` when the parent thread ends.

    Elsewhere it does nothing; the next start cleans up what is left (see `up.stop_leftovers`).
    """
    parent = os.getpid()
    libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None

    def before_exec() -> None:
        if libc is None:
            return
        libc.prctl(_PR_SET_PDEATHSIG, signal_number)
        if os.getppid() != parent:  # the parent died before the call above
            os._exit(1)

    return before_exec


@dataclass
class Child:
    """One supervised process: how to start it, how to stop it, and where its output goes."""

    name: str
    argv: Sequence[str]
    log: Path
    env: Mapping[str, str] = field(default_factory=dict)
    user: str | int | None = None
    stop_signal: int = signal.SIGTERM
    grace_s: float = 15.0
    restart: bool = True
    process: subprocess.Popen[bytes] | None = None
    starts: deque[float] = field(default_factory=lambda: deque(maxlen=6))

    def start(self) -> None:
        """Starts the process in a group of its own, so that Ctrl-C reaches only the parent."""
        self.starts.append(time.monotonic())
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                list(self.argv),
                env={**os.environ, **self.env},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                user=self.user,
                group=self.user,
                extra_groups=[] if self.user is not None else None,
                start_new_session=True,
                preexec_fn=die_with_parent(self.stop_signal),
            )

    @property
    def pid(self) -> int | None:
        return self.process.pid if self.process else None

    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def stop(self) -> None:
        """Asks to stop, waits `grace_s`, then kills the whole group."""
        if self.process is None:
            return
        if self.running():
            self.process.send_signal(self.stop_signal)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(self.grace_s)
        self._kill_group()
        self.process.wait()

    def _kill_group(self) -> None:
        """Kills what the process left in its group, such as a server that outlived its wrapper."""
        assert self.process is not None
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def revive(self) -> bool:
        """Starts the process again when it has ended; True if it did.

        Raises `RlcastError` with the end of its log when it dies again and again.
        """
        if self.running():
            return False
        recent = [t for t in self.starts if time.monotonic() - t < 60.0]
        if not self.restart or len(recent) >= 5:
            raise RlcastError(
                f"{self.name} ended with status {self.process.returncode if self.process else '?'}; "
                f"the end of {self.log}:\n{tail(self.log)}"
            )
        if self.process:
            self._kill_group()
        if recent:
            time.sleep(min(0.5 * len(recent), 2.0))
        self.start()
        return True


def tail(path: Path, lines: int = 15) -> str:
    """The last lines of a log file."""
    try:
        with path.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - 16_384))
            text = file.read().decode("utf-8", "replace")
    except FileNotFoundError:
        return "(no log)"
    return "\n".join(text.splitlines()[-lines:])
