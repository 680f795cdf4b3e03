"""Feeds any number of live streams from one reader of the events table a process.

Streams hold no database session: they read what the one poll has brought, and only a stream that was away
for long reads what it missed, in a short session of its own.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections import deque
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, select

from api.database import SessionFactory
from api.errors import Overloaded
from api.events.models import Event

_RING = 2000
_PAGE = 500
_READY_S = 5.0
#: Streams that one process serves at once.
MAX_STREAMS = 5000


@dataclass(frozen=True)
class LiveEvent:
    """An event as streams pass it on. Ids grow in the order of commits."""

    id: int
    kind: str
    run_id: uuid.UUID | None
    data: dict[str, Any]


class Broadcaster:
    """Holds the newest events. `poll` must be called again and again."""

    def __init__(self, sessions: SessionFactory) -> None:
        self._sessions = sessions
        self._ring: deque[LiveEvent] = deque(maxlen=_RING)
        self._last_id: int | None = None  # of the newest event seen; None before the first poll
        self._floor = 0  # the ring holds every event above it
        self._change = asyncio.Event()
        self.n_streams = 0

    async def poll(self) -> None:
        """Brings what was committed since the last call and wakes the streams."""
        if self._last_id is None:
            async with self._sessions() as session:
                self._last_id = self._floor = await session.scalar(select(func.max(Event.id))) or 0
            self._wake()
        while new := await self._read(self._last_id):
            overflow = len(self._ring) + len(new) - _RING
            if overflow > 0:
                self._floor = self._ring[overflow - 1].id  # a page is smaller than the ring
            self._ring.extend(new)
            self._last_id = new[-1].id
            self._wake()

    def _wake(self) -> None:
        self._change.set()
        self._change = asyncio.Event()

    async def _read(self, after: int) -> Sequence[LiveEvent]:
        columns = (Event.id, Event.kind, Event.run_id, Event.data)
        async with self._sessions() as session:
            rows = await session.execute(
                select(*columns).where(Event.id > after).order_by(Event.id).limit(_PAGE)
            )
            return [LiveEvent(*row) for row in rows]

    async def stream(
        self, after: int | None = None, run_ids: frozenset[uuid.UUID] | None = None
    ) -> AsyncIterator[LiveEvent]:
        """Events with ids above `after` (default: from now on), for ever; of `run_ids` when given.

        Events that belong to no run pass every filter. Events are kept for 7 days: a reader that was away
        longer starts with the oldest one left.
        """
        self.n_streams += 1
        try:
            assert self._last_id is not None, "await `ready` before the stream begins"
            # An id from the future comes from another database; waiting for it would be silence for long.
            position = self._last_id if after is None else min(after, self._last_id)
            while True:
                change = self._change
                events = await self._after(position)
                for event in events:
                    position = event.id
                    if run_ids is None or event.run_id is None or event.run_id in run_ids:
                        yield event
                if not events:
                    await change.wait()
        finally:
            self.n_streams -= 1

    async def _after(self, position: int) -> Sequence[LiveEvent]:
        if position < self._floor:
            return await self._read(position)
        return [event for event in self._ring if event.id > position]

    async def ready(self) -> None:
        """Waits until "now" is known, so that what is committed after it is told.

        Raises `Overloaded` when this process has as many streams as it may, or the database is away.
        """
        if self.n_streams >= MAX_STREAMS:
            raise Overloaded("too many open event streams; close some, or try again later")
        deadline = time.monotonic() + _READY_S
        while self._last_id is None:
            if time.monotonic() > deadline:
                raise Overloaded("the database does not answer; try again", code="database_unavailable")
            await asyncio.sleep(0.02)
