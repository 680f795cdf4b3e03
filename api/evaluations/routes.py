from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request

from api.auth import Requires
from api.database import SessionDep
from api.errors import Invalid
from api.evaluations import service
from api.evaluations.schemas import BatchResult, EvaluationBatch, EvaluationRead
from api.fields import Cursor, Label, Page, PathName
from api.runs import service as runs

router = APIRouter(prefix="/runs/{run}/evaluations", tags=["evaluations"])


@router.post("", dependencies=[Depends(Requires("ingest"))])
async def add_evaluations(
    run: PathName, body: EvaluationBatch, session: SessionDep, request: Request
) -> BatchResult:
    """Stores a batch in one transaction. Sending it again is harmless."""
    result = await service.ingest(session, await runs.get(session, run), body)
    received = request.app.state.metrics.evaluations
    for status in ("created", "duplicates", "superseded"):
        received.labels(status).inc(getattr(result, status))
    return result


@router.get("", dependencies=[Depends(Requires("read"))])
async def list_evaluations(
    run: PathName,
    session: SessionDep,
    benchmark: Annotated[Label | None, Query()] = None,
    after_step: Annotated[int | None, Query(ge=-1, lt=2**53)] = None,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
    cursor: Cursor = None,
) -> Page[EvaluationRead]:
    """Every evaluation in order of step; nothing is sampled or left out."""
    found = await runs.get(session, run)
    rows = await service.page(
        session,
        found,
        benchmark=benchmark,
        after_step=after_step,
        after=_position(cursor),
        limit=limit + 1,
    )
    items = [EvaluationRead.model_validate(row) for row in rows[:limit]]
    more = len(rows) > limit
    return Page(items=items, next_cursor=f"{items[-1].step}:{items[-1].benchmark}" if more else None)


def _position(cursor: str | None) -> tuple[int, str] | None:
    """The (step, benchmark) that a cursor stands for."""
    if cursor is None:
        return None
    step, _, benchmark = cursor.partition(":")
    if not (step.isdecimal() and step.isascii() and len(step) < 17 and benchmark) or "\0" in benchmark:
        raise Invalid.field("cursor", "not a cursor of this list; start again without one")
    return int(step), benchmark
