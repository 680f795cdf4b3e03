from __future__ import annotations

from typing import Any

from sqlalchemy import Index
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from api.database import Base, HasId


class Gate(HasId, Base):
    """A decision against a baseline, with everything that it was made from. Never changed."""

    __tablename__ = "gates"
    __table_args__ = (Index(None, "created_at", "id"),)

    verdict: Mapped[str]
    candidate_name: Mapped[str]
    baseline_name: Mapped[str]
    decision: Mapped[dict[str, Any]] = mapped_column(JSONB)
    candidate_forecast: Mapped[dict[str, Any]] = mapped_column(JSONB)
    #: Null when the baseline is a number.
    baseline_forecast: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
