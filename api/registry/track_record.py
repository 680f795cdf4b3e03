"""How right the service's stored forecasts have been."""

from __future__ import annotations

from sqlalchemy import ColumnElement, Float, Integer, case, cast, func, select
from sqlalchemy.ext.asyncio import AsyncSession

from api.fields import Out
from api.registry.models import ForecastTarget, StoredForecast

#: Upper ends of the bins by observed compute / forecast compute.
FRACTIONS = (0.1, 0.25, 0.5, 1.0)


class Record(Out):
    """Scores of a group of targets. `mean_error` is forecast minus actual.

    `inside` is the share of actual values in their interval, and `level` the coverage that the intervals
    promised: the two should be near each other.
    """

    law: str
    #: Share of the compute that had been seen, at most.
    fraction_seen_to: float
    n: int
    mean_error: float
    mean_absolute_error: float
    crps: float
    inside: float
    level: float


class TrackRecord(Out):
    """`n_open` targets are still to come. Retrospective ones are not counted unless asked for."""

    n_scored: int
    n_open: int
    groups: list[Record]


async def track_record(
    session: AsyncSession, *, law: str | None = None, unit: str | None = None, retrospective: bool = False
) -> TrackRecord:
    """Scores by law and fraction of compute seen."""
    conditions: list[ColumnElement[bool]] = [
        ForecastTarget.retrospective.is_(retrospective),
        ForecastTarget.run_id.is_not(None),
    ]
    if law is not None:
        conditions.append(StoredForecast.law == law)
    if unit is not None:
        conditions.append(ForecastTarget.unit == unit)
    seen = ForecastTarget.observed_to / ForecastTarget.compute
    fraction = cast(case(*((seen <= end, end) for end in FRACTIONS), else_=1.0), Float)
    query = (
        select(
            StoredForecast.law,
            fraction.label("fraction_seen_to"),
            func.count().label("n"),
            func.avg(ForecastTarget.error).label("mean_error"),
            func.avg(func.abs(ForecastTarget.error)).label("mean_absolute_error"),
            func.avg(ForecastTarget.crps).label("crps"),
            func.avg(cast(cast(ForecastTarget.inside, Integer), Float)).label("inside"),
            func.avg(cast(StoredForecast.answer["level"].astext, Float)).label("level"),
        )
        .join(StoredForecast, StoredForecast.id == ForecastTarget.forecast_id)
        .where(*conditions, ForecastTarget.scored_at.is_not(None))
        .group_by(StoredForecast.law, "fraction_seen_to")
        .order_by(StoredForecast.law, "fraction_seen_to")
    )
    groups = [Record.model_validate(row) for row in await session.execute(query)]
    n_open = (
        select(func.count(ForecastTarget.id))
        .join(StoredForecast, StoredForecast.id == ForecastTarget.forecast_id)
        .where(*conditions, ForecastTarget.scored_at.is_(None))
    )
    return TrackRecord(
        n_scored=sum(group.n for group in groups),
        n_open=await session.scalar(n_open) or 0,
        groups=groups,
    )
