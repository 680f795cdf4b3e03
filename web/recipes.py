"""The page of one recipe: its configuration, how it differs from another, and its runs."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse

from web.compare_state import CompareState
from web.gateway import Gateway, gateway_of
from web.pages import page
from web.recipe_view import differences, flatten, title
from web.session import require_session

router = APIRouter(include_in_schema=False, dependencies=[Depends(require_session)])
GatewayDep = Annotated[Gateway, Depends(gateway_of)]


@router.get("/recipes/{recipe}")
async def show(request: Request, recipe: str, gateway: GatewayDep, against: str = "") -> HTMLResponse:
    found = await gateway.get(f"/recipes/{quote(recipe, safe='')}")
    other = await gateway.get(f"/recipes/{quote(against, safe='')}") if against else None
    recipes = await gateway.items("/recipes")
    runs = await gateway.items("/runs", recipe=found["id"])
    return page(
        request,
        "recipe.html",
        recipe=found,
        title=title(found),
        options=flatten(found["config"] or {}),
        others=[(r["id"], title(r)) for r in recipes if r["id"] != found["id"] and r["config"]],
        against=other["id"] if other else None,
        different=differences([found, other]) if other else None,
        runs=runs,
        compare_query=CompareState(runs=tuple(run["name"] for run in runs[:50])).query() if runs else None,
    )
