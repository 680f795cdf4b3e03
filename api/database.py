"""Engine, sessions and the base of all models.

A request's session commits in a dependency with function scope: the commit comes before the answer is
sent, so a commit that fails is never a 2xx. Services flush and never commit.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Annotated

import uuid_utils.compat
from fastapi import Depends, Request
from sqlalchemy import DateTime, MetaData, func
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from api.settings import Settings

SessionFactory = async_sessionmaker[AsyncSession]


class Base(DeclarativeBase):
    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map = {datetime: DateTime(timezone=True), dict: JSONB}  # noqa: RUF012


def new_id() -> uuid.UUID:
    """A UUIDv7: sorted by time, so that new rows land together in an index."""
    return uuid_utils.compat.uuid7()


Id = Annotated[uuid.UUID, mapped_column(primary_key=True, default=new_id)]
CreatedAt = Annotated[datetime, mapped_column(server_default=func.now())]


class HasId:
    """Mixin: a UUIDv7 as primary key and the database's time of creation."""

    id: Mapped[Id]
    created_at: Mapped[CreatedAt]


def make_engine(settings: Settings) -> AsyncEngine:
    """Timeouts on the server's side keep one stuck request from holding locks for ever."""
    limits = "-c statement_timeout=30000 -c lock_timeout=10000 -c idle_in_transaction_session_timeout=120000"
    return create_async_engine(
        settings.database_url.get_secret_value(),
        pool_size=settings.database_pool,
        max_overflow=settings.database_pool,
        pool_timeout=10,
        pool_pre_ping=True,
        connect_args={"options": limits, "connect_timeout": 5, "application_name": "rlcast-api"},
    )


def make_sessions(engine: AsyncEngine) -> SessionFactory:
    return async_sessionmaker(engine, expire_on_commit=False)


async def get_session(request: Request) -> AsyncIterator[AsyncSession]:
    sessions: SessionFactory = request.app.state.sessions
    async with sessions() as session:
        yield session
        await session.commit()


SessionDep = Annotated[AsyncSession, Depends(get_session, scope="function")]
