"""One training process and everything it starts, owned as a process group."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rlcast.stack.processes import die_with_parent, tail

#: What a trainer inherits of the runner's environment. Secrets (token, database) are not in it.
_ALLOWED = ("PATH", "HOME", "LANG", "TZ", "TMPDIR", "VIRTUAL_ENV", "PYTHONPATH", "LD_LIBRARY_PATH")
_ALLOWED_PREFIXES = ("LC_", "CUDA_", "NVIDIA_", "NCCL_", "HF_", "OMP_", "MKL_", "OPENBLAS_", "TORCH")
_LOCK_TIMEOUT_S = 60.0


def trainer_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The part of `environ` that a trainer may see."""
    kept = {
        name: value
        for name, value in environ.items()
        if name in _ALLOWED or name.startswith(_ALLOWED_PREFIXES)
    }
    if "RLCAST_CACHE" in environ:
        kept["RLCAST_CACHE"] = environ["RLCAST_CACHE"]
    # The operator of the worker may let more through, such as WANDB_API_KEY.
    for name in environ.get("RLCAST_PASS_ENV", "").split(","):
        if name.strip() in environ:
            kept[name.strip()] = environ[name.strip()]
    return {**kept, "PYTHONUNBUFFERED": "1"}


class WorkFolder:
    """`jobs/<job id>/`: recipe, event file, checkpoints, log. Named by the server's id, never by a user."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.recipe = root / "recipe.yaml"
        self.out = root / "out"
        self.work = root / "work"  # where a command that is not ours runs
        self.events = self.out / "events.jsonl"
        self.delivered = root / "delivered.json"
        self.refused = root / "refused.jsonl"
        self.log = root / "train.log"
        self._pid = root / "pid"
        self._lock: int | None = None

    def lock(self) -> int:
        """Takes the folder for one attempt; the trainer inherits the lock and holds it while it lives.

        So a trainer that outlived its killed runner cannot write here beside the next attempt: it is
        asked to stop, then killed.
        """
        self.out.mkdir(parents=True, exist_ok=True)
        handle = os.open(self.root / "lock", os.O_CREAT | os.O_RDWR, 0o600)
        deadline = time.monotonic() + _LOCK_TIMEOUT_S
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._lock = handle
                return handle
            except BlockingIOError:
                self._end_former(signal.SIGTERM if time.monotonic() < deadline else signal.SIGKILL)
                time.sleep(1.0)

    def unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _end_former(self, number: int) -> None:
        """Signals the group of the trainer that still holds the lock."""
        with contextlib.suppress(FileNotFoundError, ValueError, ProcessLookupError, PermissionError):
            os.killpg(int(self._pid.read_text()), number)

    def remember(self, pid: int) -> None:
        self._pid.write_text(str(pid))


def trainer_command(folder: WorkFolder) -> list[str]:
    """Our trainer over a work folder; it goes on from the newest checkpoint there."""
    argv = [sys.executable, "-m", "runners.trainer", "--recipe", str(folder.recipe)]
    return [*argv, "--out", str(folder.out), "--resume"]


@dataclass(frozen=True)
class Start:
    """What to start: an argument list (never a shell's line), where, and what it sees beside the rest.

    `devices` are the UUIDs of the GPUs that it may see; None leaves that as this process has it.
    """

    argv: Sequence[str]
    cwd: Path
    devices: Sequence[str] | None = None
    env: Mapping[str, str] = field(default_factory=dict)


class TrainerProcess:
    """A training command over a work folder, in a session of its own."""

    def __init__(self, folder: WorkFolder, start: Start) -> None:
        env = {**trainer_environment(os.environ), **start.env}
        if start.devices is not None:
            env["CUDA_VISIBLE_DEVICES"] = ",".join(start.devices)
        lock = folder.lock()
        with folder.log.open("ab") as log:
            self._process = subprocess.Popen(
                list(start.argv),
                cwd=start.cwd,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=(lock,),
                # A killed runner takes its trainer along; SIGTERM lets it write a checkpoint first.
                preexec_fn=die_with_parent(signal.SIGTERM),
            )
        self._folder = folder
        folder.remember(self._process.pid)

    @property
    def exit_code(self) -> int | None:
        return self._process.poll()

    def terminate(self) -> None:
        """Asks the trainer to write a checkpoint and stop."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kills the whole group, also what outlived its leader."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def log_tail(self, lines: int = 40) -> str:
        return tail(self._folder.log, lines)


def describe_exit(code: int) -> str:
    """An exit status in words: "exit code 1" or "killed by SIGKILL"."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"
