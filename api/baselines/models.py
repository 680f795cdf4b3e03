from __future__ import annotations

import uuid

from sqlalchemy import CheckConstraint, ForeignKey
from sqlalchemy.orm import Mapped, mapped_column, relationship

from api.database import Base, HasId
from api.registry.models import StoredForecast


class Baseline(HasId, Base):
    """A pinned reference for gates: a number, or the asymptote of a stored forecast. Never changed."""

    __tablename__ = "baselines"
    __table_args__ = (CheckConstraint("(pass_rate IS NULL) <> (forecast_id IS NULL)", name="one_source"),)

    name: Mapped[str] = mapped_column(unique=True)
    pass_rate: Mapped[float | None]
    forecast_id: Mapped[uuid.UUID | None] = mapped_column(ForeignKey("stored_forecasts.id"))
    #: Why this is the reference, for those who meet it later.
    reason: Mapped[str | None]
    actor: Mapped[str]

    forecast: Mapped[StoredForecast | None] = relationship(lazy="joined")
