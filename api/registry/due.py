"""Tells the registry that a run has come further. Used where points are stored."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping

from sqlalchemy import or_, update
from sqlalchemy.ext.asyncio import AsyncSession

from api.registry.models import ForecastTarget


async def mark_due(
    session: AsyncSession, run_id: uuid.UUID, measured: Iterable[tuple[str, Mapping[str, float]]]
) -> None:
    """Marks the run's open targets that one of `measured` (benchmark, compute by unit) has reached."""
    furthest: dict[tuple[str, str], float] = {}
    for benchmark, compute in measured:
        for unit, amount in compute.items():
            furthest[benchmark, unit] = max(amount, furthest.get((benchmark, unit), 0.0))
    reached = [
        (ForecastTarget.benchmark == benchmark)
        & (ForecastTarget.unit == unit)
        & (ForecastTarget.compute <= amount)
        for (benchmark, unit), amount in furthest.items()
    ]
    open_ones = (ForecastTarget.run_id == run_id, ForecastTarget.scored_at.is_(None))
    await session.execute(update(ForecastTarget).where(*open_ones, or_(*reached)).values(due=True))
