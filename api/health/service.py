from __future__ import annotations

from sqlalchemy import text
from sqlalchemy.exc import ProgrammingError

from api.database import SessionFactory

#: The newest revision under `migrations/versions`; a test holds the two together.
SCHEMA_REVISION = "0004"


def code_revision() -> str:
    """The schema that this code needs."""
    return SCHEMA_REVISION


async def schema_revision(sessions: SessionFactory) -> str | None:
    """The schema that the database holds; None before the first migration."""
    async with sessions() as session:
        try:
            return await session.scalar(text("SELECT version_num FROM alembic_version"))
        except ProgrammingError:
            return None
