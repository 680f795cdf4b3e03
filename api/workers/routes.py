from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from sqlalchemy.ext.asyncio import AsyncSession

from api.auth import Requires
from api.database import SessionDep
from api.fields import Cursor, Limit, Page, PathName
from api.settings import Settings
from api.workers import health, service
from api.workers.models import Worker
from api.workers.schemas import Registered, WorkerBeat, WorkerCreate, WorkerOrders, WorkerRead

router = APIRouter(prefix="/workers", tags=["workers"])
_read = [Depends(Requires("read"))]
_ingest = [Depends(Requires("ingest"))]
_launch = [Depends(Requires("launch"))]


async def _shown(session: AsyncSession, workers: Sequence[Worker], settings: Settings) -> list[WorkerRead]:
    judged = await health.judge(session, workers, settings)
    load = await health.loads(session, workers)
    columns = [name for name in WorkerRead.model_fields if name not in ("healthy", "reason", "jobs")]
    return [
        WorkerRead(
            **{name: getattr(worker, name) for name in columns},
            healthy=judged[worker.id].healthy,
            reason=judged[worker.id].reason,
            jobs=[job.id for job in load[worker.id].jobs],
        )
        for worker in workers
    ]


@router.post("", status_code=201, dependencies=_ingest)
async def register_worker(body: WorkerCreate, session: SessionDep, request: Request) -> Registered:
    """A worker says what it has. 409 names the reason where it is refused, such as another version."""
    settings = request.app.state.settings
    worker = await service.register(session, body, settings)
    return Registered(
        id=worker.id, name=worker.name, own_queue=worker.own_queue, beat_s=settings.worker_beat_s
    )


@router.get("", dependencies=_read)
async def list_workers(
    session: SessionDep,
    request: Request,
    gone: Annotated[bool, Query(description="Also those that have ended, for a week.")] = False,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Page[WorkerRead]:
    """Workers, newest first, with their health: whether they consume, not only whether they answer."""
    workers, next_cursor = await service.page(session, gone=gone, limit=limit, cursor=cursor)
    items = await _shown(session, workers, request.app.state.settings)
    return Page(items=items, next_cursor=next_cursor)


@router.get("/{worker}", dependencies=_read)
async def get_worker(worker: PathName, session: SessionDep, request: Request) -> WorkerRead:
    """A worker by id, or the newest start of a name."""
    found = await service.get(session, worker)
    [shown] = await _shown(session, [found], request.app.state.settings)
    return shown


@router.post("/{worker}/heartbeat", dependencies=_ingest)
async def beat_worker(
    worker: PathName, body: WorkerBeat, session: SessionDep, request: Request
) -> WorkerOrders:
    """Says that the worker is there. 409 (`worker_gone`) means that a later start has replaced it."""
    return await service.beat(session, worker, body, request.app.state.settings)


@router.post("/{worker}/drain", dependencies=_launch)
async def drain_worker(worker: PathName, session: SessionDep, request: Request) -> WorkerRead:
    """Asks a worker to finish its jobs, take no more and end. It hears so with its next heartbeat."""
    found = await service.drain(session, worker)
    [shown] = await _shown(session, [found], request.app.state.settings)
    return shown
