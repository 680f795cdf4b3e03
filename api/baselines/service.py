from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession

from api.audit import service as audit
from api.baselines.models import Baseline
from api.context import actor
from api.database import new_id
from api.errors import Conflict, NotFound
from api.lookup import parse_id
from api.paging import Sort, fetch_page
from api.registry import service as registry


async def pin(
    session: AsyncSession, name: str, pass_rate: float | None, forecast: str | None, reason: str | None
) -> Baseline:
    """Pins a number or a stored forecast under a name. Raises `Conflict` for a taken name."""
    stored = await registry.get(session, forecast) if forecast is not None else None
    values = {
        "id": new_id(),
        "name": name,
        "pass_rate": pass_rate,
        "forecast_id": stored.id if stored else None,
        "reason": reason,
        "actor": actor.get(),
    }
    statement = insert(Baseline).values(values).on_conflict_do_nothing(index_elements=["name"])
    made = await session.scalar(statement.returning(Baseline.id))
    if made is None:
        raise Conflict(
            f"a baseline named {name!r} exists, and baselines never change; choose another name",
            errors=[("name", "is taken")],
        )
    audit.note(session, "baseline.pinned", name, pass_rate=pass_rate, forecast_id=forecast)
    return await session.get_one(Baseline, made)


async def find(session: AsyncSession, baseline: str) -> Baseline | None:
    """A baseline by id or by name."""
    baseline_id = parse_id(baseline)
    query = select(Baseline).where(
        (Baseline.name == baseline) | (Baseline.id == baseline_id if baseline_id else False)
    )
    return await session.scalar(query)


async def get(session: AsyncSession, baseline: str) -> Baseline:
    """As `find`; raises `NotFound`."""
    found = await find(session, baseline)
    if found is None:
        raise NotFound.named("baseline", baseline)
    return found


async def page(
    session: AsyncSession, *, limit: int = 100, cursor: str | None = None
) -> tuple[Sequence[Baseline], str | None]:
    """Baselines, newest first."""
    return await fetch_page(session, select(Baseline), Sort(Baseline.created_at), Baseline.id, limit, cursor)
