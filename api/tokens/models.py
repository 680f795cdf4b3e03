from __future__ import annotations

from datetime import datetime

from sqlalchemy.dialects.postgresql import ARRAY, TEXT
from sqlalchemy.orm import Mapped, mapped_column

from api.database import Base, HasId


class Token(HasId, Base):
    """A bearer token, known by its HMAC only."""

    __tablename__ = "tokens"

    name: Mapped[str] = mapped_column(unique=True)
    #: The first characters, so that people can tell their tokens apart.
    prefix: Mapped[str]
    hmac: Mapped[bytes] = mapped_column(unique=True)
    scopes: Mapped[list[str]] = mapped_column(ARRAY(TEXT))
    expires_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]
    #: Kept to the minute.
    last_used_at: Mapped[datetime | None]
