"""The folder of one logged run: what a process leaves behind, and another goes on from.

Layout: `run.json` (identity, and how many processes have logged), `events.jsonl` (appended, never
rewritten), `delivered.json` (how much of it was accepted), `service.json` (the run as the service knows
it), `meter.json` (device-hours), `refused.jsonl`, `sender.lock`. No token is ever written here.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rlcast.errors import InputError
from rlcast.spool import Spool
from rlcast.stack.folder import default_folder, write_atomically
from rlcast.tracking.identity import RunIdentity


def default_spool_folder() -> Path:
    """Where runs are kept unless `folder` says otherwise: `logged/` in the data folder."""
    return default_folder() / "logged"


def run_folders(path: Path) -> list[RunFolder]:
    """The run that `path` is, or the runs directly in it, oldest first.

    Raises `InputError` when there are none.
    """
    if (path / "run.json").is_file():
        return [RunFolder(path)]
    found = sorted(path.glob("*/run.json"), key=lambda file: file.stat().st_mtime)
    if not found:
        raise InputError(
            f"{path} holds no logged run; give the folder= of start_run, or one run in it", "FOLDER"
        )
    return [RunFolder(file.parent) for file in found]


class RunFolder:
    """Paths and files of one logged run. Every write is safe against a kill at any moment."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.events = root / "events.jsonl"
        self.delivered = root / "delivered.json"
        self.refused = root / "refused.jsonl"
        self._identity = root / "run.json"
        self._service = root / "service.json"
        self._meter = root / "meter.json"
        self._events_handle: int | None = None
        self._torn = False

    # -- the logging side ----------------------------------------------------------------------

    def open(self, identity: RunIdentity) -> int:
        """Makes the folder or joins it, and opens the event file; the number of this process, from 1."""
        self.root.mkdir(parents=True, exist_ok=True)
        with (self.root / "open.lock").open("a") as lock:
            with contextlib.suppress(OSError):  # a file system without locks
                fcntl.flock(lock, fcntl.LOCK_EX)
            number = int(_read_json(self._identity).get("processes", 0)) + 1
            write_atomically(self._identity, json.dumps({"run": identity.fields(), "processes": number}))
        self._events_handle = os.open(self.events, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        self._torn = self._ends_in_a_torn_line()
        return number

    def _ends_in_a_torn_line(self) -> bool:
        """Whether the process before was cut off within a line."""
        assert self._events_handle is not None
        size = os.fstat(self._events_handle).st_size
        return size > 0 and os.pread(self._events_handle, 1, size - 1) != b"\n"

    def append(self, sequence: int, process: int, item: dict[str, Any], metered: bool) -> None:
        """Adds one evaluation in a single write, which also outlives a kill of this process.

        `metered`: its compute counts from the first process in this folder. Raises `OSError`.
        """
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        data = {"evaluation": item, "process": process, "metered": metered}
        event = {"sequence": sequence, "at": at, "kind": "evaluation", "data": data}
        line = json.dumps(event, allow_nan=False).encode() + b"\n"
        if self._torn:  # ends the torn line, which then counts as unreadable by itself
            line = b"\n" + line
        assert self._events_handle is not None
        written = os.write(self._events_handle, line)
        self._torn = written < len(line)
        if self._torn:
            raise OSError(28, "the event was not written whole")

    def sync(self) -> None:
        """Forces appended events to the disk, against a loss of power."""
        if self._events_handle is not None:
            os.fsync(self._events_handle)

    def close(self) -> None:
        if self._events_handle is not None:
            os.close(self._events_handle)
            self._events_handle = None

    # -- the sending side ----------------------------------------------------------------------

    def identity(self) -> RunIdentity:
        """Raises `InputError` when `run.json` is damaged."""
        try:
            return RunIdentity(**_read_json(self._identity)["run"])
        except (KeyError, TypeError):
            raise InputError(f"{self._identity} cannot be read; was it edited?", "FOLDER") from None

    def spool(self) -> Spool:
        return Spool(self.events, self.delivered)

    def set_aside(self, reason: str, item: dict[str, Any]) -> None:
        """Keeps what the service will never take, with its reason."""
        with self.refused.open("a") as file:
            file.write(json.dumps({"reason": reason, "evaluation": item}) + "\n")

    def read_service(self) -> dict[str, Any]:
        return _read_json(self._service)

    def write_service(self, known: dict[str, Any]) -> None:
        write_atomically(self._service, json.dumps(known))

    def read_meter_hours(self) -> float:
        return float(_read_json(self._meter).get("device_hours", 0.0))

    def write_meter_hours(self, hours: float) -> None:
        write_atomically(self._meter, json.dumps({"device_hours": hours}))


class SenderLock:
    """Lets one process at a time send a folder's events; the kernel frees it when that process dies."""

    def __init__(self, folder: RunFolder) -> None:
        self._path = folder.root / "sender.lock"
        self._handle: int | None = None

    def take(self) -> bool:
        """True when this process is the one that sends, now or since before."""
        if self._handle is not None:
            return True
        handle = os.open(self._path, os.O_CREAT | os.O_RDWR, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return False
        except OSError:
            pass  # a file system without locks: sending twice is harmless
        self._handle = handle
        return True

    def free(self) -> None:
        """Frees the lock; in a forked child it only closes the child's copy."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


def _read_json(path: Path) -> dict[str, Any]:
    """The file's object; empty when it is absent or damaged."""
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
