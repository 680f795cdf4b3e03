"""Workers come, send heartbeats, are asked to drain, and go."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import delete, func, select
from sqlalchemy.ext.asyncio import AsyncSession

import rlcast
from api.audit import service as audit
from api.database import SessionFactory
from api.errors import Conflict, NotFound
from api.lookup import parse_id
from api.paging import Sort, fetch_page
from api.settings import Settings
from api.workers import health
from api.workers.models import Worker
from api.workers.schemas import WorkerBeat, WorkerCreate, WorkerOrders
from api.workers.wake import wake_for

_KEEP_GONE = timedelta(days=7)


async def register(session: AsyncSession, fields: WorkerCreate, settings: Settings) -> Worker:
    """Adds a worker. It takes over its name from an earlier start on the same host.

    Raises `Conflict` for another version of rlcast, a name that another host uses, or a GPU that another
    worker offers already.
    """
    _check_version(fields.versions.get("rlcast", "unknown"))
    # Registrations take turns: two of them must not both find a name or a GPU free.
    await session.execute(select(func.pg_advisory_xact_lock(func.hashtextextended("workers", 0))))
    moment = await health.now(session)
    present = (await session.scalars(select(Worker).where(Worker.state != "gone").with_for_update())).all()
    for other in present:
        heard = (moment - other.last_heartbeat_at).total_seconds() <= settings.worker_silent_s
        if other.name == fields.name:
            if heard and other.hostname != fields.hostname:
                raise _name_taken(other)
            _leave(other, "replaced")
        elif heard:
            _check_devices(fields, other)
    await session.flush()
    values = fields.model_dump()
    worker = Worker(**values, state="starting", drain_requested=False, n_taken=0, last_heartbeat_at=moment)
    session.add(worker)
    await session.flush()
    audit.note(session, "worker.registered", worker.name, worker_id=str(worker.id), hostname=worker.hostname)
    return worker


def _check_version(theirs: str) -> None:
    ours = rlcast.__version__
    if theirs.split(".")[:2] != ours.split(".")[:2]:
        raise Conflict(
            f"this worker runs rlcast {theirs} and the service {ours}; install the service's version on it",
            code="version_mismatch",
            errors=[("versions.rlcast", f"must be {'.'.join(ours.split('.')[:2])}.x")],
        )


def _name_taken(other: Worker) -> Conflict:
    return Conflict(
        f"a worker named {other.name!r} runs on {other.hostname}; choose another name with --name",
        code="worker_exists",
        errors=[("name", "is taken")],
    )


def _check_devices(fields: WorkerCreate, other: Worker) -> None:
    both = {device.uuid for device in fields.devices} & {device["uuid"] for device in other.devices}
    if both:
        uuid = min(both)
        raise Conflict(
            f"{uuid} is offered by worker {other.name!r} already; choose other GPUs with --gpus, or drain it",
            code="device_taken",
            errors=[("devices", f"{uuid} is taken")],
        )


async def get(session: AsyncSession, worker: str, *, lock: bool = False) -> Worker:
    """A worker by id, or the newest start of a name. Raises `NotFound`."""
    worker_id = parse_id(worker)
    query = select(Worker).where((Worker.name == worker) | (Worker.id == worker_id if worker_id else False))
    query = query.order_by(Worker.created_at.desc(), Worker.id.desc()).limit(1)
    if lock:
        query = query.with_for_update().execution_options(populate_existing=True)
    found = await session.scalar(query)
    if found is None:
        raise NotFound.named("worker", worker)
    return found


async def page(
    session: AsyncSession, *, gone: bool = False, limit: int = 100, cursor: str | None = None
) -> tuple[Sequence[Worker], str | None]:
    """Workers, newest first; those that are gone only with `gone`."""
    query = select(Worker)
    if not gone:
        query = query.where(Worker.state != "gone")
    return await fetch_page(session, query, Sort(Worker.created_at), Worker.id, limit, cursor)


async def beat(
    session: AsyncSession, worker_name: str, report: WorkerBeat, settings: Settings
) -> WorkerOrders:
    """Notes that a worker is there and what it does; answers what it is to do.

    Raises `Conflict` when it was replaced by a later start or has said that it ended.
    """
    worker = await get(session, worker_name, lock=True)
    moment = await health.now(session)
    if worker.state == "gone":
        if report.state == "gone" and worker.gone_because == "ended":
            return WorkerOrders(drain=True, stalled=False)
        await _come_back(session, worker)
    _note(worker, report, moment)
    await session.flush()
    judged = (await health.judge(session, [worker], settings))[worker.id]
    if worker.free_since is not None and not worker.drain_requested:
        await wake_for(session, worker, settings)
    return WorkerOrders(drain=worker.drain_requested, stalled=judged.stalled)


async def _come_back(session: AsyncSession, worker: Worker) -> None:
    """Only silence can end: a worker that was cut off goes on under its row."""
    later = select(Worker.id).where(Worker.name == worker.name, Worker.state != "gone")
    if worker.gone_because != "silent" or await session.scalar(later):
        raise Conflict(
            f"this start of worker {worker.name!r} is over ({worker.gone_because}); register again",
            code="worker_gone",
        )
    worker.gone_because = None


def _note(worker: Worker, report: WorkerBeat, moment: datetime) -> None:
    worker.last_heartbeat_at = moment
    took = report.n_taken != worker.n_taken
    if took:
        worker.n_taken, worker.last_taken_at = report.n_taken, moment
    free = report.state in ("idle", "busy") and report.n_running < worker.slots
    if not free:
        worker.free_since = None
    elif took or worker.free_since is None:
        worker.free_since = moment
    if report.state == "gone":
        _leave(worker, "ended")
    else:
        worker.state = report.state


def _leave(worker: Worker, because: str) -> None:
    worker.state, worker.gone_because, worker.free_since = "gone", because, None


async def drain(session: AsyncSession, worker_name: str) -> Worker:
    """Asks a worker to finish its jobs, take no more and end; it hears so with its next heartbeat."""
    worker = await get(session, worker_name, lock=True)
    if worker.state == "gone":
        raise Conflict(
            f"worker {worker.name!r} is gone already; there is nothing to drain", code="worker_gone"
        )
    if not worker.drain_requested:
        worker.drain_requested = True
        worker.free_since = None
        audit.note(session, "worker.drained", worker.name, worker_id=str(worker.id))
        await session.flush()
    return worker


async def sweep(sessions: SessionFactory, settings: Settings) -> int:
    """Gives up workers that have been silent for long, and forgets those long gone; returns how many left."""
    async with sessions() as session, session.begin():
        too_old = func.clock_timestamp() - timedelta(seconds=settings.worker_gone_s)
        query = select(Worker).where(Worker.state != "gone", Worker.last_heartbeat_at < too_old)
        silent = (await session.scalars(query.with_for_update(skip_locked=True))).all()
        for worker in silent:
            _leave(worker, "silent")
        old = func.clock_timestamp() - _KEEP_GONE
        await session.execute(delete(Worker).where(Worker.state == "gone", Worker.last_heartbeat_at < old))
        return len(silent)
