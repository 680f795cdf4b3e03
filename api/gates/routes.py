from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Request

from api.auth import Requires
from api.database import SessionDep
from api.fields import Cursor, Page, PathName
from api.gates import service
from api.gates.schemas import GateRead, GateRequest
from api.idempotency import OnceDep

router = APIRouter(prefix="/gates", tags=["gates"])


@router.post("", status_code=201, dependencies=[Depends(Requires("launch"))])
async def decide_gate(body: GateRequest, session: SessionDep, request: Request, once: OnceDep) -> GateRead:
    """Forecasts both sides, decides, and stores the decision with both forecasts."""
    sessions = request.app.state.sessions
    async with sessions() as reading:  # given back before the fit, which can take seconds
        task = await service.prepare(reading, body)
    answer = await request.app.state.forecaster.gate(task)
    gate = GateRead.model_validate(service.to_dict(await service.record(session, body, task, answer)))
    await once.keep(gate)
    request.app.state.metrics.gates.labels(gate.verdict).inc()
    return gate


@router.get("", dependencies=[Depends(Requires("read"))])
async def list_gates(
    session: SessionDep,
    verdict: Annotated[Literal["pass", "fail", "inconclusive"] | None, Query()] = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 50,
    cursor: Cursor = None,
) -> Page[GateRead]:
    """Gates, newest first."""
    gates, next_cursor = await service.page(session, verdict=verdict, limit=limit, cursor=cursor)
    items = [GateRead.model_validate(service.to_dict(gate)) for gate in gates]
    return Page(items=items, next_cursor=next_cursor)


@router.get("/{gate}", dependencies=[Depends(Requires("read"))])
async def get_gate(gate: PathName, session: SessionDep) -> GateRead:
    return GateRead.model_validate(service.to_dict(await service.get(session, gate)))
