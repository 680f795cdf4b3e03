"""Reads the event file that a trainer appends to, and remembers how much of it was delivered.

The trainer writes one JSON object a line and syncs it before it goes on, so a line that ends in a
newline is complete; a cut last line is a write in progress (or the moment of a crash) and is left
for later. Delivery is remembered as a byte offset in a file of its own, written atomically after
the receiver said yes: after a crash at any moment an event may be sent twice, never zero times.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlcast.stack.folder import write_atomically


@dataclass(frozen=True)
class Event:
    """One line of the event file; `end` is the byte offset behind it.

    `kind` is "evaluation", "progress", "started", "finished", "failed", or "unreadable" for a line
    that is not JSON (then `data` holds its text).
    """

    sequence: int
    kind: str
    data: dict[str, Any]
    end: int


class Spool:
    """The events of `events`, from the first that was not yet delivered."""

    def __init__(self, events: Path, delivered: Path | None = None) -> None:
        self.events = events
        self._delivered_file = delivered
        self.delivered = self._read_offset()

    def _read_offset(self) -> int:
        if self._delivered_file is None:
            return 0
        try:
            return int(json.loads(self._delivered_file.read_text())["offset"])
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return 0  # sending again is harmless, skipping is not

    def pending(self, limit: int = 500, max_bytes: int | None = None) -> list[Event]:
        """Up to `limit` complete events that wait for delivery, in order.

        `max_bytes` ends the list behind the event that reaches it: what is read stays bounded whatever
        has piled up.
        """
        return list(self._read(limit, max_bytes))

    def _read(self, limit: int, max_bytes: int | None) -> Iterator[Event]:
        try:
            file = self.events.open("rb")
        except FileNotFoundError:
            return
        with file:
            file.seek(self.delivered)
            end = self.delivered
            for _ in range(limit):
                line = file.readline()
                if not line.endswith(b"\n"):
                    return
                end += len(line)
                yield _parse(line, end)
                if max_bytes is not None and end - self.delivered >= max_bytes:
                    return

    def mark_delivered(self, event: Event) -> None:
        """Says that `event` and all before it have been accepted."""
        self.delivered = event.end
        if self._delivered_file is not None:
            text = json.dumps({"offset": event.end, "sequence": event.sequence})
            write_atomically(self._delivered_file, text)


def _parse(line: bytes, end: int) -> Event:
    try:
        record = json.loads(line)
        return Event(int(record["sequence"]), str(record["kind"]), dict(record["data"]), end)
    except (ValueError, KeyError, TypeError):
        return Event(0, "unreadable", {"text": line[:200].decode("utf-8", "replace")}, end)
