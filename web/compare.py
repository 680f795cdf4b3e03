"""The Compare page: choose curves, read their verdicts, numbers and chart; all of it in the address."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import HTMLResponse

from fitting import METHODS
from rlcast import __version__
from rlcast.figure_line import line_spec
from rlcast.figures import forecast_spec
from web.activity import latest
from web.compare_data import Comparison, compare, list_runs
from web.compare_state import LEVELS, CompareState, parse_state, parse_theme
from web.compare_view import RunItem, curves_of, groups_of, resolve, rows_of, window_of
from web.export import forecasts_csv, points_csv
from web.gateway import MAX_LISTED, Gateway, gateway_of
from web.pages import fragment, page, plain_text
from web.session import require_session
from web.words import figure_summary, headline, pair_lines

router = APIRouter(include_in_schema=False, dependencies=[Depends(require_session)])
GatewayDep = Annotated[Gateway, Depends(gateway_of)]


#: What stands below the chart, by view.
CAPTIONS = {
    "curve": "Filled points were fitted, hollow ones not. Solid: the law where points support it. Dashed: "
    "extrapolation. Light band: the chosen level; darker band: 50%. Drag a window end to move it.",
    "line": "The share of the gain made over the share still to make. The law is a straight line here: "
    "points that bend away show where it does not hold. Drag a window end to move it.",
}


def _state(request: Request, runs: Sequence[RunItem]) -> CompareState:
    return resolve(parse_state(request.query_params), runs)


def _catalogue(runs: Sequence[RunItem], state: CompareState) -> dict[str, Any]:
    return {"groups": groups_of(runs, state), "more": len(runs) if len(runs) >= MAX_LISTED else 0}


@router.get("/")
async def show(request: Request, gateway: GatewayDep) -> HTMLResponse:
    """The page itself comes at once; its module then asks for the forecasts."""
    runs = await list_runs(gateway)
    state = _state(request, runs)
    return page(
        request,
        "compare.html",
        **_catalogue(runs, state),
        **await latest(gateway),
        state=state,
        laws=list(METHODS),
        levels=LEVELS,
        benchmarks=sorted({run.benchmark for run in runs}),
        units=sorted({run.unit for run in runs}),
        origin=str(request.base_url).rstrip("/"),
    )


@router.get("/compare/data")
async def data(request: Request, gateway: GatewayDep) -> Response:
    """Everything that depends on the choice: verdicts, numbers, figure, data table."""
    runs = await list_runs(gateway)
    state = _state(request, runs)
    result = await compare(gateway, runs, state)
    body = _panel(result, state, parse_theme(request.query_params))
    return Response(json.dumps(body, allow_nan=False), media_type="application/json")


def _panel(result: Comparison, state: CompareState, theme: Any) -> dict[str, Any]:
    forecasts = result.forecasts
    if state.view == "line":
        figure = line_spec(forecasts, theme=theme)
    else:
        figure = forecast_spec(
            forecasts, baseline=result.baseline, margin=state.margin, budget=result.at, theme=theme
        )
    panel = fragment(
        "_panel.html",
        rows=rows_of(forecasts, theme),
        headline=headline(forecasts, result.pair),
        pair=pair_lines(result.pair),
        at=result.at,
        reach=state.reach,
        level=state.level,
        different=result.different,
    )
    return {
        "query": state.query(),
        "panel": panel,
        "data": fragment("_data.html", curves=curves_of(forecasts)),
        "summary": figure_summary(forecasts),
        "caption": CAPTIONS[state.view],
        "figure": figure,
        "window": window_of(forecasts, state),
        "errors": result.errors,
        "at": plain_text(result.at),
        "run_ids": result.run_ids,
        "hashes": [f["inputs_sha256"] for f in forecasts if f.get("inputs_sha256")],
        "version": __version__,
    }


@router.get("/compare/catalogue")
async def catalogue(request: Request, gateway: GatewayDep) -> HTMLResponse:
    runs = await list_runs(gateway)
    return HTMLResponse(fragment("_catalogue.html", **_catalogue(runs, _state(request, runs))))


@router.get("/compare/side")
async def side(gateway: GatewayDep) -> HTMLResponse:
    return HTMLResponse(fragment("_side.html", **await latest(gateway)))


async def _exported(request: Request, gateway: Gateway) -> list[dict[str, Any]]:
    runs = await list_runs(gateway)
    return (await compare(gateway, runs, _state(request, runs))).forecasts


def _download(text: str, media_type: str, name: str) -> Response:
    return Response(
        text, media_type=media_type, headers={"Content-Disposition": f'attachment; filename="{name}"'}
    )


def _csv_route(name: str, write: Callable[[Sequence[dict[str, Any]]], str]) -> None:
    @router.get(f"/compare/{name}", name=name)
    async def download(request: Request, gateway: GatewayDep) -> Response:
        text = write(await _exported(request, gateway))
        return _download(text, "text/csv; charset=utf-8", f"rlcast-{name}")


_csv_route("points.csv", points_csv)
_csv_route("forecasts.csv", forecasts_csv)


@router.get("/compare/forecasts.json")
async def download_json(request: Request, gateway: GatewayDep) -> Response:
    """The forecasts as `rlcast forecast --json` gives them."""
    body = {"rlcast": __version__, "forecasts": await _exported(request, gateway)}
    return _download(json.dumps(body, allow_nan=False, indent=1), "application/json", "rlcast-forecasts.json")
