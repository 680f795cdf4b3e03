"""The page of one run: curve, how its forecast came about, residuals, compute spent, evaluations."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import HTMLResponse

from fitting.units import unit_label
from rlcast.figure_run import history_figure, residual_figure
from rlcast.figure_style import Theme
from rlcast.figures import forecast_spec
from web.compare_data import Chosen, forecast_curve, load_evaluations
from web.compare_state import CompareState, parse_theme
from web.compare_view import run_item
from web.gateway import Gateway, Problem, gateway_of
from web.pages import fragment, moment_text, page
from web.session import require_session
from web.words import figure_summary, verdict_of

router = APIRouter(include_in_schema=False, dependencies=[Depends(require_session)])
GatewayDep = Annotated[Gateway, Depends(gateway_of)]

#: Of the run's compute, where earlier forecasts are made again for the history.
HISTORY_PARTS = (0.15, 0.25, 0.35, 0.5, 0.65, 0.8, 0.9, 1.0)
#: Enough for the history's bars; the page's own forecast uses the service's default.
HISTORY_REPLICATES = 200


@router.get("/runs/{run}")
async def show(request: Request, run: str, gateway: GatewayDep) -> HTMLResponse:
    """The page itself comes at once; its module then asks for figures."""
    found = await gateway.get(f"/runs/{quote(run, safe='')}")
    query = CompareState(runs=(found["name"],)).query()
    return page(
        request,
        "run.html",
        run=found,
        compare_query=query,
        verdict=None,
        facts=_facts(found),
        job=None,
        meters=[],
    )


@router.get("/runs/{run}/data")
async def data(request: Request, run: str, gateway: GatewayDep) -> Response:
    found = await gateway.get(f"/runs/{quote(run, safe='')}")
    curve = Chosen(found["name"], found["recipe"]["name"], [run_item(found)])
    await load_evaluations(gateway, curve, None)
    unit = found["compute_unit"]
    forecast, history, job = await asyncio.gather(
        forecast_curve(gateway, curve, CompareState(), unit, None),
        _history(gateway, found, curve, unit),
        _job(gateway, found),
    )
    last = max(curve.evaluations, key=lambda e: e["step"], default=None)
    part = fragment(
        "_run.html",
        run=found,
        verdict=verdict_of(forecast),
        facts=_facts(found),
        job=job,
        meters=[(unit_label(name), value) for name, value in (last["compute"] if last else {}).items()],
    )
    evaluations = fragment(
        "_evaluations.html",
        evaluations=curve.evaluations,
        attempts=len({e["attempt"] for e in curve.evaluations}),
        unit=unit,
    )
    body = {
        "part": part,
        "evaluations": evaluations,
        "summary": figure_summary([forecast]),
        "figures": _figures(forecast, history, parse_theme(request.query_params)),
    }
    return Response(json.dumps(body, allow_nan=False), media_type="application/json")


def _figures(
    forecast: Mapping[str, Any], history: Sequence[Mapping[str, Any]], theme: Theme
) -> dict[str, Any]:
    return {
        "curve": forecast_spec([forecast], theme=theme),
        "history": history_figure(history, theme=theme).to_plotly_json(),
        "residuals": residual_figure(forecast, theme=theme).to_plotly_json(),
    }


async def _history(
    gateway: Gateway, run: Mapping[str, Any], curve: Chosen, unit: str
) -> list[dict[str, Any]]:
    """Forecasts that saw only the run's beginning, from its first part to all of it."""
    compute = [row[0] for row in curve.points(unit) if row[0] > 0]
    if not compute:
        return []
    ends = sorted(
        {
            max(c for c in compute if c <= part * compute[-1])
            for part in HISTORY_PARTS
            if compute[0] <= part * compute[-1]
        }
    )

    async def up_to(end: float) -> dict[str, Any] | None:
        body = {"runs": [run["id"]], "unit": unit, "max_compute": end, "replicates": HISTORY_REPLICATES}
        try:
            forecast: dict[str, Any] = (await gateway.post("/forecasts", body))["forecasts"][0]
        except Problem:  # too few points up to there: no forecast could be made then
            return None
        return forecast

    return [forecast for forecast in await asyncio.gather(*map(up_to, ends)) if forecast]


async def _job(gateway: Gateway, run: Mapping[str, Any]) -> dict[str, Any] | None:
    if not run.get("job_id"):
        return None
    job: dict[str, Any] = await gateway.get(f"/jobs/{run['job_id']}")
    return job


def _facts(run: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What is known about the run, in words; what is not given is left out."""
    facts = [
        ("Benchmark", run["benchmark"]),
        ("Compute in", unit_label(run["compute_unit"])),
        ("Model", run.get("model")),
        ("Task", run.get("task")),
        ("Seed", run.get("seed")),
        ("Source", run.get("source")),
        ("Tags", ", ".join(f"{key}: {value}" for key, value in run["tags"].items())),
        ("Evaluations", run["n_evaluations"]),
        (
            "Last evaluation",
            moment_text(run["last_evaluation_at"]) if run.get("last_evaluation_at") else None,
        ),
        ("Registered", moment_text(run["created_at"])),
    ]
    return [(name, str(value)) for name, value in facts if value not in (None, "")]
