from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request

from api.auth import Requires
from api.database import SessionDep
from api.fields import Cursor, Limit, Page, PathName
from api.idempotency import OnceDep
from api.jobs import leases, service
from api.jobs.schemas import (
    Beat,
    Claim,
    Claimed,
    Finish,
    Heartbeat,
    JobCreate,
    JobRead,
    JobState,
)

router = APIRouter(prefix="/jobs", tags=["jobs"])
_launch = [Depends(Requires("launch"))]
_ingest = [Depends(Requires("ingest"))]
_read = [Depends(Requires("read"))]


@router.post("", status_code=201, dependencies=_launch)
async def submit_job(body: JobCreate, session: SessionDep, request: Request, once: OnceDep) -> JobRead:
    """Queues a recipe for training, or a command where the service allows them.

    A runner is woken as soon as the broker can be reached.
    """
    job = await service.submit(session, body, request.app.state.settings)
    answer = JobRead.model_validate(job)
    await once.keep(answer)
    return answer


@router.get("", dependencies=_read)
async def list_jobs(
    session: SessionDep,
    state: Annotated[JobState | None, Query()] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Page[JobRead]:
    """Jobs, newest first, without their logs."""
    jobs, next_cursor = await service.page(session, state=state, limit=limit, cursor=cursor)
    items = [JobRead.model_validate(job).model_copy(update={"log_tail": None}) for job in jobs]
    return Page(items=items, next_cursor=next_cursor)


@router.get("/{job}", dependencies=_read)
async def get_job(job: PathName, session: SessionDep) -> JobRead:
    """A job by id, or by its run's name."""
    return JobRead.model_validate(await service.get(session, job))


@router.post("/{job}/cancel", dependencies=_launch)
async def cancel_job(job: PathName, session: SessionDep) -> JobRead:
    """Cancels a queued job at once; a running one at its next heartbeat."""
    return JobRead.model_validate(await service.cancel(session, job))


@router.post("/{job}/claim", dependencies=_ingest)
async def claim_job(job: PathName, body: Claim, session: SessionDep, request: Request) -> Claimed:
    """A runner takes an attempt. One wins; the others get 409."""
    return await leases.claim(session, job, body, request.app.state.settings)


@router.post("/{job}/heartbeat", dependencies=_ingest)
async def send_heartbeat(job: PathName, body: Heartbeat, session: SessionDep, request: Request) -> Beat:
    """Renews the lease. 409 means that the job is no longer this runner's: stop."""
    return await leases.heartbeat(session, job, body, request.app.state.settings.lease_s)


@router.post("/{job}/finish", dependencies=_ingest)
async def finish_job(job: PathName, body: Finish, session: SessionDep) -> JobRead:
    """Reports the end of an attempt. Sending it again is harmless."""
    return JobRead.model_validate(await leases.finish(session, job, body))
