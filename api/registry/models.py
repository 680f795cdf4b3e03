from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ForeignKey, Identity, Index, text
from sqlalchemy.dialects.postgresql import ARRAY, DOUBLE_PRECISION, JSONB
from sqlalchemy.orm import Mapped, mapped_column, relationship

from api.database import Base, HasId
from api.runs.models import Run


class StoredForecast(HasId, Base):
    """A forecast that was kept, with the exact points and options that it was made from. Never changed."""

    __tablename__ = "stored_forecasts"
    __table_args__ = (Index(None, "created_at", "id"), Index(None, "run_id"))

    name: Mapped[str]
    run_id: Mapped[uuid.UUID | None] = mapped_column(ForeignKey("runs.id"))
    recipe_id: Mapped[uuid.UUID | None] = mapped_column(ForeignKey("recipes.id"))
    benchmark: Mapped[str]
    unit: Mapped[str]
    law: Mapped[str]
    actor: Mapped[str]
    code_version: Mapped[str]
    #: SHA-256 of points, options and code version.
    content_sha256: Mapped[str]
    #: SHA-256 of the answer as canonical JSON: a recomputation must give the same.
    answer_sha256: Mapped[str]
    task: Mapped[dict[str, Any]] = mapped_column(JSONB)
    answer: Mapped[dict[str, Any]] = mapped_column(JSONB)

    run: Mapped[Run | None] = relationship(lazy="joined")
    targets: Mapped[list[ForecastTarget]] = relationship(
        lazy="selectin", order_by="ForecastTarget.id", back_populates="forecast"
    )

    @property
    def stale(self) -> bool | None:
        """Whether its run has got evaluations since; null for a forecast from several runs."""
        if self.run is None:
            return None
        newest = self.run.last_evaluation_at
        return newest is not None and newest > self.created_at


class ForecastTarget(Base):
    """One asked compute of a stored forecast, and how it turned out.

    `retrospective`: the run had been there already when the forecast was made, so that it proves nothing
    about the future.
    """

    __tablename__ = "forecast_targets"
    __table_args__ = (
        Index("ix_forecast_targets_open", "run_id", postgresql_where=text("scored_at IS NULL")),
        Index("ix_forecast_targets_due", "id", postgresql_where=text("due AND scored_at IS NULL")),
        Index(None, "forecast_id"),
    )

    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    forecast_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("stored_forecasts.id"))
    #: Null for a forecast from several runs, which is never scored.
    run_id: Mapped[uuid.UUID | None] = mapped_column(ForeignKey("runs.id"))
    benchmark: Mapped[str]
    unit: Mapped[str]
    compute: Mapped[float]
    value: Mapped[float]
    low: Mapped[float]
    high: Mapped[float]
    #: The forecast's quantiles at (i - 1/2)/20 for i = 1…20.
    quantiles: Mapped[list[float]] = mapped_column(ARRAY(DOUBLE_PRECISION))
    #: Largest compute that the forecast has seen.
    observed_to: Mapped[float]
    retrospective: Mapped[bool]
    #: The run has been reported at or beyond this compute.
    due: Mapped[bool]
    scored_at: Mapped[datetime | None]
    actual: Mapped[float | None]
    error: Mapped[float | None]
    inside: Mapped[bool | None]
    crps: Mapped[float | None]

    forecast: Mapped[StoredForecast] = relationship(back_populates="targets")

    @property
    def fraction_seen(self) -> float:
        return self.observed_to / self.compute
