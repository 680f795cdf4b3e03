"""The Track record page: how right kept forecasts have been, and keeping the ones on the Compare page."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse

from web.compare_data import choose, forecast_request, list_runs
from web.compare_state import parse_state
from web.compare_view import resolve
from web.gateway import Gateway, Problem, gateway_of
from web.pages import page
from web.security import require_same_origin
from web.session import require_session

router = APIRouter(include_in_schema=False, dependencies=[Depends(require_session)])
GatewayDep = Annotated[Gateway, Depends(gateway_of)]

#: Of the newest stored forecasts, how many are looked through for the worst misses.
N_LOOKED_THROUGH = 400
N_MISSES = 10


@router.get("/track-record")
async def show(request: Request, gateway: GatewayDep, retrospective: bool = False) -> HTMLResponse:
    record, stored = await asyncio.gather(
        gateway.get("/track-record", retrospective="true" if retrospective else None),
        gateway.items("/forecasts", N_LOOKED_THROUGH, 100),
    )
    return page(
        request,
        "track_record.html",
        record=record,
        retrospective=retrospective,
        misses=worst_misses(stored, retrospective),
        n_looked_through=len(stored),
    )


def worst_misses(stored: Sequence[Mapping[str, Any]], retrospective: bool) -> list[dict[str, Any]]:
    """Scored values by the size of their error, the largest first."""
    scored = [
        {**target, "name": forecast["name"], "unit": forecast["unit"], "law": forecast["law"]}
        for forecast in stored
        for target in forecast["targets"]
        if target["error"] is not None and target["retrospective"] is retrospective
    ]
    return sorted(scored, key=lambda target: -abs(target["error"]))[:N_MISSES]


@router.post("/compare/keep", dependencies=[Depends(require_same_origin)])
async def keep(request: Request, gateway: GatewayDep) -> Response:
    """Stores the forecasts that the page's address shows, so that they are scored when the runs get there."""
    runs = await list_runs(gateway)
    state = resolve(parse_state(request.query_params), runs)
    errors: dict[str, str] = {}
    chosen = choose(runs, state, errors)
    if state.at is None:
        return JSONResponse({"message": "Give a budget first: a kept forecast is scored there."}, 422)
    unit = state.unit or next((run.unit for curve in chosen for run in curve.runs), "gpu_hours")
    kept = 0
    for curve in chosen:
        try:
            body = forecast_request(curve, state, unit, state.at)
            await gateway.post("/forecasts", {**body, "save": True})
            kept += 1
        except Problem as problem:
            errors[curve.name] = problem.line
    words = "1 forecast kept" if kept == 1 else f"{kept} forecasts kept"
    skipped = "".join(f"; {name}: {why}" for name, why in errors.items())
    return JSONResponse({"message": f"{words}; scored when the runs get to the budget{skipped}."})
