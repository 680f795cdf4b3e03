from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Request
from pydantic import Field

from api.auth import Requires
from api.database import SessionDep
from api.fields import ComputeUnit, Cursor, Label, Out, Page, PathName
from api.registry import service
from api.registry.track_record import TrackRecord, track_record
from api.runs import service as runs

router = APIRouter(tags=["forecasts"], dependencies=[Depends(Requires("read"))])


class TargetRead(Out):
    """A forecast value and, once the run got there, how it turned out."""

    compute: float
    value: float
    low: float
    high: float
    fraction_seen: float
    retrospective: bool
    scored_at: datetime | None
    actual: float | None
    error: float | None
    inside: bool | None
    crps: float | None


class StoredForecastRead(Out):
    """A stored forecast; `answer` is what `POST /forecasts` gave."""

    id: UUID
    name: str
    run_id: UUID | None
    recipe_id: UUID | None
    benchmark: str
    unit: str
    law: str
    actor: str
    code_version: str
    content_sha256: str
    answer_sha256: str
    created_at: datetime
    stale: bool | None = Field(description="The run has got evaluations since; null for several runs.")
    targets: list[TargetRead]
    answer: dict[str, Any]


class Verified(Out):
    """`same`: the stored points and options give the stored answer, byte for byte."""

    same: bool
    answer_sha256: str
    recomputed_sha256: str
    code_version: str


@router.get("/forecasts")
async def list_forecasts(
    session: SessionDep,
    run: Annotated[Label | None, Query(description="Id or name.")] = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 50,
    cursor: Cursor = None,
) -> Page[StoredForecastRead]:
    """Stored forecasts, newest first."""
    run_id = (await runs.get(session, run)).id if run is not None else None
    found, next_cursor = await service.page(session, run_id=run_id, limit=limit, cursor=cursor)
    return Page(items=[StoredForecastRead.model_validate(f) for f in found], next_cursor=next_cursor)


@router.get("/forecasts/{forecast}")
async def get_forecast(forecast: PathName, session: SessionDep) -> StoredForecastRead:
    return StoredForecastRead.model_validate(await service.get(session, forecast))


@router.post("/forecasts/{forecast}/verify")
async def verify_forecast(forecast: PathName, request: Request) -> Verified:
    """Makes the forecast again from its stored points and options, and compares."""
    async with request.app.state.sessions() as reading:  # given back before the fit
        stored = await service.get(reading, forecast)
    answer = await request.app.state.forecaster.recompute(service.task_of(stored))
    recomputed = service.answer_sha256(answer)
    return Verified(
        same=recomputed == stored.answer_sha256,
        answer_sha256=stored.answer_sha256,
        recomputed_sha256=recomputed,
        code_version=request.app.version,
    )


@router.get("/track-record")
async def get_track_record(
    session: SessionDep,
    law: Annotated[Label | None, Query()] = None,
    unit: ComputeUnit | None = None,
    retrospective: Annotated[bool, Query(description="Of forecasts for compute already reached.")] = False,
) -> TrackRecord:
    """How right stored forecasts have been, by law and share of the compute that they had seen."""
    return await track_record(session, law=law, unit=unit, retrospective=retrospective)
