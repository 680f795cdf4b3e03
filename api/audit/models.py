from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Identity, Index
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from api.database import Base, CreatedAt


class AuditEntry(Base):
    """Who did what that costs money or changes what others may do. Never changed, never removed."""

    __tablename__ = "audit_log"
    __table_args__ = (Index(None, "created_at"),)

    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    created_at: Mapped[CreatedAt]
    #: Name of the token that was used.
    actor: Mapped[str]
    action: Mapped[str]
    subject: Mapped[str]
    details: Mapped[dict[str, Any]] = mapped_column(JSONB)
    request_id: Mapped[str | None]
