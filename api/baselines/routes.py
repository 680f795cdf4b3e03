from __future__ import annotations

from datetime import datetime
from uuid import UUID

from fastapi import APIRouter, Depends
from pydantic import model_validator

from api.auth import Requires
from api.baselines import service
from api.database import SessionDep
from api.fields import Cursor, In, Limit, Name, Out, Page, PassRate, PathName, Text
from api.idempotency import OnceDep

router = APIRouter(prefix="/baselines", tags=["baselines"])


class BaselineCreate(In):
    """Either `pass_rate`, or `forecast`: the id of a forecast stored with `save`."""

    name: Name
    pass_rate: PassRate | None = None
    forecast: UUID | None = None
    reason: Text | None = None

    @model_validator(mode="after")
    def _one_source(self) -> BaselineCreate:
        if (self.pass_rate is None) == (self.forecast is None):
            raise ValueError("give either pass_rate or forecast")
        return self


class BaselineRead(Out):
    id: UUID
    name: str
    pass_rate: float | None
    forecast_id: UUID | None
    reason: str | None
    actor: str
    created_at: datetime


@router.post("", status_code=201, dependencies=[Depends(Requires("launch"))])
async def pin_baseline(body: BaselineCreate, session: SessionDep, once: OnceDep) -> BaselineRead:
    """Pins a reference for gates. It is never changed: pin another under a new name."""
    forecast = str(body.forecast) if body.forecast else None
    baseline = await service.pin(session, body.name, body.pass_rate, forecast, body.reason)
    answer = BaselineRead.model_validate(baseline)
    await once.keep(answer)
    return answer


@router.get("", dependencies=[Depends(Requires("read"))])
async def list_baselines(
    session: SessionDep, limit: Limit = 100, cursor: Cursor = None
) -> Page[BaselineRead]:
    """Baselines, newest first."""
    found, next_cursor = await service.page(session, limit=limit, cursor=cursor)
    return Page(items=[BaselineRead.model_validate(b) for b in found], next_cursor=next_cursor)


@router.get("/{baseline}", dependencies=[Depends(Requires("read"))])
async def get_baseline(baseline: PathName, session: SessionDep) -> BaselineRead:
    return BaselineRead.model_validate(await service.get(session, baseline))
