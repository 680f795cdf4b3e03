"""The data folder of one installation, and the lock that lets one `rlcast up` hold it.

Layout: `lock` (held while up), `up.json` (who holds it: pid, address, children), `token` (0600),
`postgres/`, `valkey/`, `jobs/` (one working folder a job), `logs/`.
"""

from __future__ import annotations

import fcntl
import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from rlcast.errors import InputError


def default_folder() -> Path:
    """`$RLCAST_HOME`, else `~/.rlcast`."""
    return Path(os.environ.get("RLCAST_HOME") or Path.home() / ".rlcast").expanduser()


@dataclass(frozen=True)
class DataFolder:
    """Paths under one data folder."""

    root: Path

    @property
    def token_file(self) -> Path:
        return self.root / "token"

    @property
    def state_file(self) -> Path:
        return self.root / "up.json"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def jobs(self) -> Path:
        return self.root / "jobs"

    def create(self) -> None:
        """Makes the folder and its parts. Raises `InputError` when it cannot be written."""
        try:
            for path in (self.root, self.logs, self.jobs):
                path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"--data {self.root} cannot be made ({error.strerror})", "--data") from None

    def read_state(self) -> dict[str, Any] | None:
        """What the last `up` wrote about itself, or None."""
        try:
            state = json.loads(self.state_file.read_text())
        except (FileNotFoundError, json.JSONDecodeError):
            return None
        return state if isinstance(state, dict) else None

    def write_state(self, state: dict[str, Any]) -> None:
        """Replaces the state file atomically: a reader sees the old or the new, never a part."""
        write_atomically(self.state_file, json.dumps(state, indent=1))


def write_atomically(path: Path, text: str) -> None:
    """Writes beside the target, syncs, then renames over it."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


class FolderLock:
    """An advisory lock on the data folder, released by the kernel when its holder dies."""

    def __init__(self, folder: DataFolder) -> None:
        self.folder = folder
        self._file: IO[str] | None = None

    def acquire(self) -> None:
        """Takes the lock, or raises `InputError` that says who holds it."""
        file = (self.folder.root / "lock").open("a+")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            state = self.folder.read_state() or {}
            raise InputError(
                f"rlcast is already up on {self.folder.root} (process {state.get('pid', 'starting')}, "
                f"{state.get('url', 'address not known yet')}); stop it with Ctrl-C there, "
                "or choose another folder with --data",
                "--data",
            ) from None
        self._file = file

    def release(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
