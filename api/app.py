"""Puts the service together. `uvicorn api.app:create_app --factory` runs it without the dashboard."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from fastapi import APIRouter, Depends, FastAPI

import rlcast
from api import idempotency, models
from api.audit.routes import router as audit
from api.auth import authenticate, read_or_make_token
from api.background import run_in_background
from api.baselines.routes import router as baselines
from api.comparisons.routes import router as comparisons
from api.database import SessionFactory, make_engine, make_sessions
from api.errors import Problem, add_error_handlers
from api.evaluations.routes import router as evaluations
from api.events.broadcaster import Broadcaster
from api.events.routes import router as events
from api.forecasts.pool import Forecaster
from api.forecasts.routes import router as forecasts
from api.gates.routes import router as gates
from api.health.routes import probes
from api.health.routes import router as info
from api.idempotency import Replay, answer_replay
from api.jobs import relay
from api.jobs.publisher import Publisher
from api.jobs.routes import router as jobs
from api.logs import configure_logs
from api.metrics.routes import router as metrics
from api.metrics.service import Metrics
from api.middleware import BodyLimit, RequestIds
from api.openapi import router as openapi
from api.recipes.routes import router as recipes
from api.registry import service as registry_service
from api.registry.routes import router as registry
from api.runs.routes import router as runs
from api.settings import Settings
from api.tokens.routes import router as tokens
from api.workers import service as workers_service
from api.workers.routes import router as workers

__all__ = ["create_app", "models"]

_PROBLEMS: dict[int | str, dict[str, Any]] = {
    code: {"model": Problem, "content": {"application/problem+json": {}}, "description": words}
    for code, words in {
        401: "No valid token.",
        403: "The token lacks a scope.",
        422: "A value cannot be used; `errors` names the field and the remedy.",
        503: "The database does not answer.",
    }.items()
}


def _api_router() -> APIRouter:
    """All of `/api/v1`: nothing in it answers without a token."""
    router = APIRouter(prefix="/api/v1", dependencies=[Depends(authenticate)], responses=_PROBLEMS)
    for part in (
        info,
        recipes,
        runs,
        evaluations,
        forecasts,
        gates,
        comparisons,
        jobs,
        workers,
        events,
        baselines,
        registry,
        tokens,
        audit,
        openapi,
    ):
        router.include_router(part)
    return router


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    settings: Settings = app.state.settings
    sessions: SessionFactory = app.state.sessions
    async with AsyncExitStack() as stack:
        stack.push_async_callback(app.state.engine.dispose)
        publisher = Publisher(settings.broker_url.get_secret_value())
        stack.callback(publisher.close)
        app.state.publisher = publisher
        app.state.forecaster = Forecaster(
            settings.forecast_workers, settings.forecast_timeout_s, app.state.metrics
        )
        stack.callback(app.state.forecaster.close)
        app.state.broadcaster = Broadcaster(sessions)
        steps: list[tuple[str, Callable[[], Awaitable[object]], float]] = [
            ("relay of wake-ups", lambda: relay.relay(sessions, publisher), settings.relay_s),
            ("sweep of leases", lambda: relay.take_back_expired(sessions), settings.sweep_s),
            ("sweep of messages", lambda: relay.send_again(sessions, settings.resend_s), settings.sweep_s),
            ("sweep of workers", lambda: workers_service.sweep(sessions, settings), settings.sweep_s),
            ("reader of events", lambda: app.state.broadcaster.poll(), settings.events_poll_s),
            ("scoring of forecasts", lambda: registry_service.score_due(sessions), settings.sweep_s),
            ("purge of keys", lambda: idempotency.purge(sessions), 3600.0),
            ("purge", lambda: relay.purge(sessions), 3600.0),
        ]
        for name, step, every_s in steps:
            run_in_background(stack, name, step, every_s)
        yield


def create_app(settings: Settings | None = None) -> FastAPI:
    """The API, with what it needs on `app.state`: settings, engine, sessions, token.

    Settings come from the environment when not given.
    """
    settings = settings or Settings()  # type: ignore[call-arg]  # fields come from the environment
    configure_logs(settings.log_json)
    app = FastAPI(
        title="rlcast",
        version=rlcast.__version__,
        description="Forecasts for reinforcement-learning post-training: runs, evaluations, forecasts, "
        "gates and jobs.",
        lifespan=_lifespan,
        docs_url=None,  # FastAPI's page loads scripts from other hosts
        redoc_url=None,
        openapi_url=None,
    )
    app.state.settings = settings
    app.state.token = read_or_make_token(settings.token_path)
    app.state.engine = make_engine(settings)
    app.state.sessions = make_sessions(app.state.engine)
    app.state.metrics = Metrics()
    add_error_handlers(app)
    app.add_exception_handler(Replay, answer_replay)
    app.include_router(probes)
    app.include_router(metrics, responses=_PROBLEMS)
    app.include_router(_api_router())
    app.add_middleware(BodyLimit)
    app.add_middleware(RequestIds, metrics=app.state.metrics)
    return app
