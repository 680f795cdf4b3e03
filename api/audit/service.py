"""Notes what was done, in the transaction that does it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from api.audit.models import AuditEntry
from api.context import actor, request_id

Action = Literal[
    "job.submitted",
    "command.submitted",
    "job.cancelled",
    "gate.decided",
    "baseline.pinned",
    "worker.registered",
    "worker.drained",
    "token.made",
    "token.revoked",
]


def note(session: AsyncSession, action: Action, subject: str, **details: Any) -> None:
    """Adds an entry for the caller of the current request. `details` must never hold a secret."""
    entry = AuditEntry(action=action, subject=subject, details=details, actor=actor.get())
    entry.request_id = request_id.get()
    session.add(entry)


async def page(
    session: AsyncSession, *, action: str | None = None, before: int | None = None, limit: int = 100
) -> Sequence[AuditEntry]:
    """Entries, newest first."""
    query = select(AuditEntry).order_by(AuditEntry.id.desc()).limit(limit)
    if action is not None:
        query = query.where(AuditEntry.action == action)
    if before is not None:
        query = query.where(AuditEntry.id < before)
    return (await session.scalars(query)).all()
