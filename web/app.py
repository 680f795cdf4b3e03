"""The dashboard on top of the API: `uvicorn --factory web.app:create_app`.

The API accepts bearer tokens only, the pages accept the session's cookie only; so no page of another site
can make a browser call the API.
"""

from __future__ import annotations

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException

from api.app import create_app as create_api
from api.settings import Settings
from web import assets, compare, gates, jobs, live, login, recipes, runs, track_record
from web.gateway import API, Problem
from web.pages import page
from web.security import SecurityHeaders
from web.session import NotLoggedIn, answer_not_logged_in


def create_app(settings: Settings | None = None) -> FastAPI:
    """The API with the dashboard mounted on it. Settings come from the environment when not given."""
    app = create_api(settings)
    app.add_middleware(SecurityHeaders)
    app.add_exception_handler(NotLoggedIn, answer_not_logged_in)
    app.add_exception_handler(Problem, _answer_problem)
    _show_errors_as_pages(app)
    for router in (
        login.router,
        compare.router,
        runs.router,
        recipes.router,
        jobs.router,
        gates.router,
        track_record.router,
    ):
        app.include_router(router)
    app.router.routes.append(live.route)
    assets.mount(app)
    return app


async def _answer_problem(request: Request, error: Exception) -> Response:
    """What the service refused, as a page for people and as its line for our modules."""
    assert isinstance(error, Problem)
    if "text/html" in request.headers.get("accept", ""):
        return page(request, "problem.html", error.status, detail=error.line)
    return Response(error.line, error.status, media_type="text/plain")


def _show_errors_as_pages(app: FastAPI) -> None:
    """People who open a wrong address get a page; programs and the API keep their problem documents."""
    for_programs = app.exception_handlers[HTTPException]

    async def answer(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        is_api = request.url.path.startswith(f"{API}/")
        if is_api or "text/html" not in request.headers.get("accept", ""):
            answered: Response = await for_programs(request, error)  # type: ignore[misc]
            return answered
        detail = "There is no such page." if error.status_code == 404 else str(error.detail)
        return page(request, "problem.html", error.status_code, detail=detail)

    app.add_exception_handler(HTTPException, answer)
