from __future__ import annotations

from fastapi import APIRouter, Depends, Request

from api.auth import Requires
from api.comparisons import service
from api.comparisons.schemas import ComparisonRead, ComparisonRequest

router = APIRouter(prefix="/comparisons", tags=["comparisons"])


@router.post("", dependencies=[Depends(Requires("read"))])
async def make_comparison(body: ComparisonRequest, request: Request) -> ComparisonRead:
    """Difference of A, B at a common A, compute to reach a score, where the lead changes, and who wins at which
    budget. Nothing is stored; the same points and options give the same bytes."""
    async with request.app.state.sessions() as reading:
        task = await service.prepare(reading, body)
    return ComparisonRead.model_validate(await request.app.state.forecaster.compare(task))
