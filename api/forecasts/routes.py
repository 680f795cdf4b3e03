from __future__ import annotations

from fastapi import APIRouter, Depends, Request

from api.auth import Requires
from api.forecasts import service
from api.forecasts.schemas import ForecastList, ForecastRequest

router = APIRouter(prefix="/forecasts", tags=["forecasts"])


@router.post("", dependencies=[Depends(Requires("read"))])
async def make_forecasts(body: ForecastRequest, request: Request) -> ForecastList:
    """Forecasts runs, and recipes from all their runs. The same points and options give the same bytes."""
    async with request.app.state.sessions() as session:  # given back before the fit, which can take seconds
        prepared = await service.prepare(session, body)
    forecasts = await service.make(request.app.state.forecaster, prepared)
    return ForecastList.model_validate({"forecasts": forecasts})
