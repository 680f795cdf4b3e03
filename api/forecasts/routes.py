from __future__ import annotations

import asyncio
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Request

from api.auth import Principal, Requires
from api.database import SessionDep
from api.errors import Forbidden
from api.forecasts import service
from api.forecasts.schemas import ForecastList, ForecastRequest
from api.registry import service as registry

router = APIRouter(prefix="/forecasts", tags=["forecasts"])


@router.post("")
async def make_forecasts(
    body: ForecastRequest,
    session: SessionDep,
    request: Request,
    principal: Annotated[Principal, Depends(Requires("read"))],
) -> ForecastList:
    """Forecasts runs, and recipes from all their runs. The same points and options give the same bytes.

    With `save` (needs the scope `ingest`) each is stored with what it was made from.
    """
    if body.save and not principal.may("ingest"):
        raise Forbidden("this token lacks the scope `ingest`, which `save` needs")
    async with request.app.state.sessions() as reading:  # given back before the fit, which can take seconds
        prepared = await service.prepare(reading, body)
    forecaster = request.app.state.forecaster
    answers = await service.make(forecaster, prepared)
    ids: list[UUID | None] = [None] * len(answers)
    if body.save:
        made = [(*known, answer) for known, answer in zip(prepared, answers, strict=True)]
        targets = await asyncio.gather(*(registry.make_targets(forecaster, *one) for one in made))
        stored = [await registry.save(session, *one, t) for one, t in zip(made, targets, strict=True)]
        ids = [forecast.id for forecast in stored]
    items = [
        {**answer, "id": stored_id, "run_id": subject.run_id, "recipe_id": subject.recipe_id}
        for (subject, _), answer, stored_id in zip(prepared, answers, ids, strict=True)
    ]
    return ForecastList.model_validate({"forecasts": items})
