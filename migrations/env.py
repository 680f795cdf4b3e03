"""Run by Alembic: connects and migrates in one transaction a revision."""

from __future__ import annotations

from alembic import context
from sqlalchemy import create_engine, pool, text

from api.models import Base

# Processes that start at once (two of `rlcast up`, two replicas) take turns on this lock.
_MIGRATION_LOCK = 0x726C636D


def run() -> None:
    url = str(context.config.attributes["database_url"])
    for plain in ("postgresql://", "postgres://"):
        if url.startswith(plain):
            url = f"postgresql+psycopg://{url.removeprefix(plain)}"
    # A migration that waits for a lock makes every query behind it wait too: give up soon instead.
    engine = create_engine(url, poolclass=pool.NullPool, connect_args={"options": "-c lock_timeout=10000"})
    with engine.connect() as connection:
        connection.execute(text("SET lock_timeout = 0"))
        connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": _MIGRATION_LOCK})
        connection.execute(text("SET lock_timeout = 10000"))
        connection.commit()
        context.configure(
            connection=connection,
            target_metadata=Base.metadata,
            transaction_per_migration=True,
            compare_server_default=True,
        )
        with context.begin_transaction():
            context.run_migrations()
        connection.commit()


run()
