"""A training command that is not ours: its files, and the way from its output to events.

The events go into the same spool as our trainer's, so that delivery, retries and fencing are the same.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

from rlcast.stack.folder import write_atomically
from runners.allocation import Allocation
from runners.process import WorkFolder
from runners.readers import JsonLines, Point, Reader
from runners.trainer.events import EventLog

log = logging.getLogger("rlcast.command")

_CHUNK_BYTES = 4_000_000


class Lines:
    """The complete lines that a growing file has got since the last call.

    How far it was read is kept in a file, so that the next attempt misses no line and reads none twice.
    """

    def __init__(self, path: Path, position: Path) -> None:
        self._path = path
        self._position = position
        self._offset = self._read_position()

    def _read_position(self) -> int:
        try:
            return int(json.loads(self._position.read_text())["offset"])
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return 0

    def read(self, to_end: bool = False) -> list[str]:
        """The new lines; with `to_end` also a last one without a newline."""
        try:
            with self._path.open("rb") as file:
                file.seek(0, 2)
                if file.tell() < self._offset:  # written anew
                    self._offset = 0
                file.seek(self._offset)
                content = file.read(_CHUNK_BYTES)
        except FileNotFoundError:
            return []
        whole = content.rfind(b"\n") + 1
        at_end = len(content) < _CHUNK_BYTES
        if (to_end and at_end) or (whole == 0 and not at_end):  # the latter: a line without end
            whole = len(content)
        self._offset += whole
        return content[:whole].decode("utf-8", "replace").splitlines()

    def remember(self) -> None:
        """Says that what came of the lines read so far is on disk."""
        write_atomically(self._position, json.dumps({"offset": self._offset}))


class CommandWatch:
    """Turns a command's output into events while it runs."""

    def __init__(self, folder: WorkFolder, command: dict[str, Any], allocation: Allocation) -> None:
        self._folder = folder
        self._unit = str(command["compute_unit"])
        self._allocation = allocation
        self._reader: Reader = JsonLines()
        results = command.get("results_file")
        source = folder.work / results if results else folder.log
        self._lines = Lines(source, folder.root / "read.json")
        folder.out.mkdir(parents=True, exist_ok=True)
        self._events = EventLog(folder.events)
        self.poll(to_end=True)  # what an earlier attempt wrote last, metered at what had been used by then

    def started(self) -> None:
        self._events.append("progress", {"phase": "running"})

    def poll(self, to_end: bool = False) -> None:
        """Reads what is new; returns when its points are in the spool. `to_end`: the command has ended."""
        while lines := self._lines.read(to_end):
            self._take(lines)
            self._lines.remember()
            if not to_end:
                return

    def _take(self, lines: list[str]) -> None:
        for line in lines:
            try:
                points = [self._data(point) for point in self._reader.feed(line)]
            except ValueError as error:
                self._set_aside(line, str(error))
                continue
            for data in points:
                self._events.append("evaluation", data)
                self._events.append("progress", {"step": data["step"], **data["compute"]})

    def _data(self, point: Point) -> dict[str, Any]:
        held = self._allocation.compute()
        compute = {self._unit: held[self._unit]} if self._unit in held else {}
        if point.gpu_hours is not None:
            compute["gpu_hours"] = point.gpu_hours
        if self._unit not in compute:
            raise ValueError(f"{self._unit}: the job holds no GPU to meter; write it into each line")
        counts = {name: getattr(point, name) for name in ("n_prompts", "n_samples", "benchmark")}
        given = {name: value for name, value in counts.items() if value is not None}
        return {"step": point.step, "pass_rate": point.pass_rate, "compute": compute, **given}

    def _set_aside(self, line: str, reason: str) -> None:
        with self._folder.refused.open("a") as file:
            file.write(json.dumps({"reason": reason, "line": line[:1000]}) + "\n")
        log.warning("a line was refused (%s); kept in %s", reason, self._folder.refused)

    def close(self) -> None:
        self._events.close()


def write_files(folder: WorkFolder, files: dict[str, str]) -> None:
    """Puts the job's files into its working folder. The service has checked that names are no paths."""
    folder.work.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        path = folder.work / name
        if path.parent != folder.work:
            raise ValueError(f"{name!r} is not the name of a file")
        write_atomically(path, text)
