from __future__ import annotations

import uuid
from typing import Any

from sqlalchemy import BigInteger, Identity, Index
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from api.database import Base, CreatedAt


class Event(Base):
    """Something that happened, for live views. Ids grow in the order of commits (see `service`)."""

    __tablename__ = "events"
    __table_args__ = (Index(None, "created_at"),)

    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    kind: Mapped[str]
    #: No foreign key: an event is a record of the past, not a part of the run.
    run_id: Mapped[uuid.UUID | None]
    data: Mapped[dict[str, Any]] = mapped_column(JSONB)
    created_at: Mapped[CreatedAt]
