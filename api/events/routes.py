from __future__ import annotations

import uuid
from collections.abc import AsyncIterable
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.sse import EventSourceResponse, ServerSentEvent

from api.auth import Requires
from api.events.broadcaster import Broadcaster
from api.fields import Label
from api.runs import service as runs

router = APIRouter(prefix="/events", tags=["events"])

EventId = Annotated[int, Query(ge=0, lt=2**63)]


async def _run_ids(
    request: Request,
    names: Annotated[list[Label] | None, Query(alias="runs", max_length=100)] = None,
) -> frozenset[uuid.UUID] | None:
    """Looks the runs up in a session that is closed before the stream begins."""
    if not names:
        return None
    async with request.app.state.sessions() as session:
        return frozenset([(await runs.get(session, name)).id for name in names])


async def _broadcaster(request: Request) -> Broadcaster:
    broadcaster: Broadcaster = request.app.state.broadcaster
    await broadcaster.ready()
    return broadcaster


@router.get("", response_class=EventSourceResponse, dependencies=[Depends(Requires("read"))])
async def stream_events(
    run_ids: Annotated[frozenset[uuid.UUID] | None, Depends(_run_ids)],
    broadcaster: Annotated[Broadcaster, Depends(_broadcaster)],
    after: EventId | None = None,
    last_event_id: Annotated[int | None, Header(ge=0, lt=2**63)] = None,
) -> AsyncIterable[ServerSentEvent]:
    """Server-sent events: `run.created`, `evaluation.created`, `job.changed`, `gate.decided`.

    `runs` (repeatable, id or name) leaves out those of other runs. `Last-Event-ID`, which browsers send by
    themselves, or `after` go on where a stream broke off; without them it begins now.
    """
    start = last_event_id if last_event_id is not None else after
    async for event in broadcaster.stream(start, run_ids):
        yield ServerSentEvent(data=event.data, event=event.kind, id=str(event.id))
