"""Keeps forecasts for ever, makes them again to prove them, and scores them when the run gets there."""

from __future__ import annotations

import hashlib
import json
import logging
import uuid
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncSession

import rlcast
from api.context import actor
from api.database import SessionFactory
from api.errors import NotFound
from api.evaluations import service as evaluations
from api.forecasts.pool import Forecaster, content_key
from api.forecasts.service import Subject
from api.forecasts.worker import ForecastTask
from api.lookup import parse_id
from api.paging import Sort, fetch_page
from api.registry import scores
from api.registry.models import ForecastTarget, StoredForecast
from api.runs.models import Run

log = logging.getLogger("api.registry")


def answer_sha256(answer: dict[str, Any]) -> str:
    """SHA-256 (hex) of canonical JSON. Python writes floats so that they read back the same."""
    canonical = json.dumps(answer, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


async def save(
    session: AsyncSession,
    subject: Subject,
    task: ForecastTask,
    answer: dict[str, Any],
    targets: list[ForecastTarget],
) -> StoredForecast:
    """Stores a forecast with its targets (see `make_targets`)."""
    stored = StoredForecast(
        name=subject.name,
        run_id=subject.run_id,
        recipe_id=subject.recipe_id,
        benchmark=task.options["benchmark"],
        unit=answer["unit"],
        law=answer["law"],
        actor=actor.get(),
        code_version=rlcast.__version__,
        content_sha256=content_key("make_forecast", task),
        answer_sha256=answer_sha256(answer),
        task=asdict(task),
        answer=answer,
    )
    stored.targets = targets
    session.add(stored)
    await session.flush()
    await session.refresh(stored, ["created_at"])
    return stored


async def make_targets(
    forecaster: Forecaster, subject: Subject, task: ForecastTask, answer: dict[str, Any]
) -> list[ForecastTarget]:
    """What will be scored: one target for each asked compute whose forecast has finite quantiles.

    Needs no session, but takes a second.
    """
    if not answer["at"]:
        return []
    quantiles = await forecaster.quantiles(task)
    reached = max(max(curve.compute, default=0.0) for curve in task.curves)
    return [
        ForecastTarget(
            run_id=subject.run_id,
            benchmark=task.options["benchmark"],
            unit=answer["unit"],
            compute=target["compute"],
            value=target["value"],
            low=target["low"],
            high=target["high"],
            quantiles=ends,
            observed_to=answer["window"]["max_compute"],
            retrospective=target["compute"] <= reached,
            due=target["compute"] <= reached,
        )
        for target, ends in zip(answer["at"], quantiles, strict=True)
        if ends is not None
    ]


async def get(session: AsyncSession, forecast: str) -> StoredForecast:
    """A stored forecast by id. Raises `NotFound`."""
    forecast_id = parse_id(forecast)
    found = await session.get(StoredForecast, forecast_id) if forecast_id else None
    if found is None:
        raise NotFound.named("forecast", forecast)
    return found


async def page(
    session: AsyncSession, *, run_id: uuid.UUID | None = None, limit: int = 100, cursor: str | None = None
) -> tuple[Sequence[StoredForecast], str | None]:
    """Stored forecasts, newest first."""
    query = select(StoredForecast)
    if run_id is not None:
        query = query.where(StoredForecast.run_id == run_id)
    sort = Sort(StoredForecast.created_at)
    return await fetch_page(session, query, sort, StoredForecast.id, limit, cursor)


def task_of(stored: StoredForecast) -> ForecastTask:
    """The stored points and options, ready to be computed again."""
    return ForecastTask.from_dict(stored.task)


async def score_due(sessions: SessionFactory) -> int:
    """Scores the targets that their runs have reached; returns how many. Safe in several processes."""
    async with sessions() as session, session.begin():
        query = select(ForecastTarget).where(ForecastTarget.due, ForecastTarget.scored_at.is_(None))
        query = query.where(ForecastTarget.run_id.is_not(None)).order_by(ForecastTarget.id).limit(100)
        targets = (await session.scalars(query.with_for_update(skip_locked=True))).all()
        for target in targets:
            await _score(session, target)
        return len(targets)


async def _score(session: AsyncSession, target: ForecastTarget) -> None:
    run = await session.get_one(Run, target.run_id)
    rows = await evaluations.all_of(session, run, target.benchmark)
    points = [(row.compute[target.unit], row.pass_rate) for row in rows if target.unit in row.compute]
    actual = scores.value_at(target.compute, points)
    if actual is None:  # the point that made it due was replaced by a smaller one
        target.due = False
        return
    target.scored_at = func.clock_timestamp()
    target.actual = actual
    target.error = target.value - actual
    target.inside = target.low <= actual <= target.high
    target.crps = scores.crps(target.quantiles, actual)
