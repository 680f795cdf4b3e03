"""The Gates page: decisions with their evidence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse

from web.activity import gate_sentence, gate_tone
from web.compare_state import CompareState
from web.gateway import Gateway, gateway_of
from web.pages import fragment, page
from web.session import require_session

router = APIRouter(include_in_schema=False, dependencies=[Depends(require_session)])
GatewayDep = Annotated[Gateway, Depends(gateway_of)]
N_ON_PAGE = 25


def _side(side: Mapping[str, Any]) -> dict[str, Any]:
    state = str(side.get("state") or "").replace("_", " ")
    return {"value": side.get("value"), "low": side.get("low"), "high": side.get("high"), "state": state}


def _item(gate: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **gate,
        "tone": gate_tone(gate),
        "sentence": gate_sentence(gate),
        **{key: _side(gate[key]) for key in ("candidate", "baseline", "difference")},
        "chart": _chart(gate),
    }


def _chart(gate: Mapping[str, Any]) -> str:
    """The address that draws the decision's curves with the window and law it was made with."""
    forecasts = [f for f in (gate.get("candidate_forecast"), gate.get("baseline_forecast")) if f]
    runs = tuple(str(f["run"]) for f in forecasts)
    baseline = gate["baseline_name"] if gate.get("baseline_forecast") else f"{gate['baseline']['value']:g}"
    state = CompareState(runs=runs, baseline=baseline, margin=gate["margin"], chosen=True)
    return state.query()


async def _listed(gateway: Gateway, cursor: str | None) -> dict[str, Any]:
    found = await gateway.get("/gates", limit=N_ON_PAGE, cursor=cursor)
    return {"gates": [_item(gate) for gate in found["items"]], "next_cursor": found.get("next_cursor")}


@router.get("/gates")
async def show(request: Request, gateway: GatewayDep, cursor: str | None = None) -> HTMLResponse:
    return page(request, "gates.html", **await _listed(gateway, cursor))


@router.get("/gates/part")
async def part(gateway: GatewayDep, cursor: str | None = None) -> HTMLResponse:
    return HTMLResponse(fragment("_gates.html", **await _listed(gateway, cursor)))
