"""The Jobs page: the queue, progress, the end of each log, and cancelling."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import HTMLResponse, PlainTextResponse, RedirectResponse

from web.activity import OPEN_STATES, job_fraction, job_meters, job_tone
from web.gateway import Gateway, Problem, gateway_of
from web.pages import fragment, page
from web.security import require_same_origin
from web.session import require_session

router = APIRouter(include_in_schema=False, dependencies=[Depends(require_session)])
GatewayDep = Annotated[Gateway, Depends(gateway_of)]
N_ON_PAGE = 25


def _item(job: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **job,
        "tone": job_tone(job),
        "open": job["state"] in OPEN_STATES,
        "fraction": job_fraction(job),
        "meters": job_meters(job),
    }


async def _listed(gateway: Gateway, cursor: str | None) -> dict[str, Any]:
    found = await gateway.get("/jobs", limit=N_ON_PAGE, cursor=cursor)
    return {"jobs": [_item(job) for job in found["items"]], "next_cursor": found.get("next_cursor")}


@router.get("/jobs")
async def show(request: Request, gateway: GatewayDep, cursor: str | None = None) -> HTMLResponse:
    return page(request, "jobs.html", **await _listed(gateway, cursor))


@router.get("/jobs/part")
async def part(gateway: GatewayDep, cursor: str | None = None) -> HTMLResponse:
    return HTMLResponse(fragment("_jobs.html", **await _listed(gateway, cursor)))


@router.get("/jobs/{job}/log")
async def log(job: str, gateway: GatewayDep) -> PlainTextResponse:
    """The end of the trainer's log, as text."""
    found = await gateway.get(f"/jobs/{quote(job, safe='')}")
    return PlainTextResponse(found["log_tail"] or "Nothing logged yet.")


@router.post("/jobs/{job}/cancel", dependencies=[Depends(require_same_origin)])
async def cancel(job: str, gateway: GatewayDep) -> Response:
    try:
        await gateway.post(f"/jobs/{quote(job, safe='')}/cancel")
    except Problem as problem:
        if problem.status != 409:  # it ended meanwhile: the page shows how
            raise
    return RedirectResponse("/jobs", 303)
