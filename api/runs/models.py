from __future__ import annotations

import uuid
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import ForeignKey, Index
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column, relationship

from api.database import Base, HasId
from api.recipes.models import Recipe


class Run(HasId, Base):
    """One execution of a recipe with a seed, a model and a task."""

    __tablename__ = "runs"
    __table_args__ = (Index(None, "created_at", "id"), Index(None, "recipe_id"))

    name: Mapped[str] = mapped_column(unique=True)
    recipe_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("recipes.id"))
    benchmark: Mapped[str]
    compute_unit: Mapped[str]
    model: Mapped[str | None]
    task: Mapped[str | None]
    seed: Mapped[int | None]
    source: Mapped[str | None]
    tags: Mapped[dict[str, Any]] = mapped_column(JSONB)
    n_evaluations: Mapped[int] = mapped_column(server_default="0")
    last_evaluation_at: Mapped[datetime | None]
    recipe: Mapped[Recipe] = relationship(lazy="joined", innerjoin=True)

    if TYPE_CHECKING:
        #: The job that makes this run; null for a run logged from elsewhere. See `api.jobs.models`.
        job_id: Mapped[uuid.UUID | None]
