"""Whether workers consume. A heartbeat alone proves little: a worker that lost its broker still sends one."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, func, select, true
from sqlalchemy.ext.asyncio import AsyncSession

from api.jobs.models import HELD, Job
from api.settings import Settings
from api.workers.fit import Load, misfit
from api.workers.models import Worker

#: A job is looked at among this many that wait longest.
_WAITING = 200
_GONE = {
    "ended": "it ended",
    "silent": "gone: no heartbeat for minutes",
    "replaced": "it was started again under the same name",
}


@dataclass(frozen=True)
class Health:
    """`stalled`: it has a free slot and does not take a job that fits."""

    healthy: bool
    reason: str | None = None
    stalled: bool = False


async def now(session: AsyncSession) -> datetime:
    """The database's clock."""
    moment = await session.scalar(select(func.clock_timestamp()))
    assert moment is not None
    return moment


def allowed(settings: Settings) -> ColumnElement[bool]:
    """Of jobs: whether they may be claimed by the service's settings."""
    return true() if settings.allow_commands else Job.kind != "command"


async def loads(session: AsyncSession, workers: Sequence[Worker]) -> dict[uuid.UUID, Load]:
    """What each worker has to do."""
    held: dict[uuid.UUID, list[Job]] = {worker.id: [] for worker in workers}
    query = select(Job).where(Job.worker_id.is_not(None), Job.state.in_(HELD)).order_by(Job.id)
    devices: set[str] = set()
    for job in await session.scalars(query):
        devices.update(job.devices or ())
        if job.worker_id in held:
            held[job.worker_id].append(job)
    return {worker_id: Load(tuple(jobs), frozenset(devices)) for worker_id, jobs in held.items()}


async def judge(
    session: AsyncSession, workers: Sequence[Worker], settings: Settings
) -> dict[uuid.UUID, Health]:
    """The health of each worker, by the jobs that wait now."""
    moment = await now(session)
    # A job whose wake-up has not reached the broker is nobody's fault here.
    query = select(Job).where(Job.state == "queued", Job.published_at.is_not(None), allowed(settings))
    waiting = (await session.scalars(query.order_by(Job.queued_at).limit(_WAITING))).all()
    load = await loads(session, workers)
    return {w.id: _judge(w, load[w.id], waiting, moment, settings) for w in workers}


def _judge(
    worker: Worker, load: Load, waiting: Sequence[Job], moment: datetime, settings: Settings
) -> Health:
    if worker.gone_because is not None:
        return Health(False, _GONE[worker.gone_because])
    silent_s = (moment - worker.last_heartbeat_at).total_seconds()
    if silent_s > settings.worker_silent_s:
        return Health(False, f"no heartbeat for {silent_s:.0f} s")
    if worker.free_since is None:
        return Health(True)
    for job in waiting:
        since = max(job.queued_at, worker.free_since)
        if moment - since > timedelta(seconds=settings.worker_idle_s) and not misfit(job, worker, load):
            waits_s = (moment - since).total_seconds()
            return Health(False, f"has not taken job {job.id}, which fits, for {waits_s:.0f} s", stalled=True)
    return Health(True)
