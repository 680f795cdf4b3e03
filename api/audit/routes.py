from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query

from api.audit import service
from api.audit.service import Action
from api.auth import Requires
from api.database import SessionDep
from api.fields import Limit, Out, Page

router = APIRouter(prefix="/audit", tags=["audit"])


class AuditEntryRead(Out):
    id: int
    created_at: datetime
    actor: str
    action: str
    subject: str
    details: dict[str, Any]
    request_id: str | None


@router.get("", dependencies=[Depends(Requires("admin"))])
async def list_entries(
    session: SessionDep,
    action: Annotated[Action | None, Query()] = None,
    limit: Limit = 100,
    cursor: Annotated[int | None, Query(ge=1, lt=2**63)] = None,
) -> Page[AuditEntryRead]:
    """Launches, cancellations, gates, baselines and token changes, newest first."""
    entries = await service.page(session, action=action, before=cursor, limit=limit + 1)
    items = [AuditEntryRead.model_validate(entry) for entry in entries[:limit]]
    return Page(items=items, next_cursor=str(items[-1].id) if len(entries) > limit else None)
