from __future__ import annotations

from typing import Any

from sqlalchemy import UniqueConstraint
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from api.database import Base, HasId


class Recipe(HasId, Base):
    """One version of a named training configuration. Never changed after it is made.

    `config` is null for a recipe that is known by name only, as after an import.
    """

    __tablename__ = "recipes"
    __table_args__ = (UniqueConstraint("name", "version"), UniqueConstraint("name", "content_hash"))

    name: Mapped[str]
    version: Mapped[int]
    content_hash: Mapped[str]
    config: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    description: Mapped[str | None]
