"""Two runs or recipes held against each other."""

from __future__ import annotations

from sqlalchemy.ext.asyncio import AsyncSession

from api.comparisons.schemas import ComparisonRequest
from api.forecasts import service as forecasts
from api.forecasts.worker import ComparisonTask


async def prepare(session: AsyncSession, asked: ComparisonRequest) -> ComparisonTask:
    """Reads the points of both sides. Raises `NotFound` or `Invalid`."""
    sides = [await forecasts.subject_named(session, name) for name in (asked.candidate, asked.baseline)]
    axes = forecasts.common_axes([run for side in sides for run in side.runs], asked)
    candidate, baseline = [await forecasts.task_of(session, side, axes, asked) for side in sides]
    return ComparisonTask(candidate, baseline, asked.margin, asked.reach, asked.same_prompts)
