"""Appends events to the transaction that they tell of.

Readers ask for "ids above the last one I saw". If two transactions drew their ids at once and the higher
one committed first, a reader would pass the lower one for ever. So ids are drawn under a lock that is
held until the commit, and, to hold it shortly, only right before the commit.
"""

from __future__ import annotations

import uuid
from typing import Any, Literal

from sqlalchemy import event, func, insert, select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Session

from api.events.models import Event

EventKind = Literal["run.created", "evaluation.created", "job.changed", "gate.decided"]

_PENDING = "pending_events"
_APPEND_LOCK = 0x726C6361  # any number that no other advisory lock of this database uses


def append(
    session: AsyncSession, kind: EventKind, data: dict[str, Any], run_id: uuid.UUID | None = None
) -> None:
    """Stores an event when, and only when, the session's transaction commits."""
    pending = session.sync_session.info.setdefault(_PENDING, [])
    pending.append({"kind": kind, "data": data, "run_id": run_id})


@event.listens_for(Session, "before_commit")
def _store_pending(session: Session) -> None:
    pending = session.info.pop(_PENDING, None)
    if pending:
        session.flush()
        session.execute(select(func.pg_advisory_xact_lock(_APPEND_LOCK)))
        session.execute(insert(Event), pending)


@event.listens_for(Session, "after_rollback")
def _forget_pending(session: Session) -> None:
    session.info.pop(_PENDING, None)
