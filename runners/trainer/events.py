"""The run's event log: one JSON object a line, on disk before anybody acts on it."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

Kind = Literal["started", "progress", "evaluation", "finished", "failed"]


class EventLog:
    """Appends to `events.jsonl` with a sequence from 1 without gaps, also across restarts.

    A line that a crash cut short was never complete, so nobody has read it: opening the log removes it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        whole = self._drop_torn_line()
        self.events: list[dict[str, Any]] = [json.loads(line) for line in whole.splitlines()]
        self._file = path.open("ab", buffering=0)

    def _drop_torn_line(self) -> bytes:
        content = self._path.read_bytes() if self._path.exists() else b""
        whole = content[: content.rfind(b"\n") + 1]
        if len(whole) < len(content):
            os.truncate(self._path, len(whole))
        return whole

    def append(self, kind: Kind, data: dict[str, Any]) -> None:
        """Returns once the line is on disk."""
        event = {
            "sequence": len(self.events) + 1,
            "at": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "kind": kind,
            "data": data,
        }
        self._file.write(json.dumps(event, allow_nan=False).encode() + b"\n")
        os.fsync(self._file.fileno())
        self.events.append(event)

    def evaluated(self) -> set[tuple[str, int]]:
        """The benchmarks and steps that have an evaluation."""
        found = (event["data"] for event in self.events if event["kind"] == "evaluation")
        return {(data["benchmark"], data["step"]) for data in found}

    def is_finished(self) -> bool:
        return bool(self.events) and self.events[-1]["kind"] == "finished"

    def last_value(self, key: str) -> float:
        """The largest value of a running total in progress and evaluation events; 0 without any."""
        values = (
            event["data"].get("compute", event["data"]).get(key, 0.0)
            for event in self.events
            if event["kind"] in ("progress", "evaluation")
        )
        return max(values, default=0.0)

    def close(self) -> None:
        self._file.close()
