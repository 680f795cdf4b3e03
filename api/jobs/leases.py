"""A runner's side of a job: claim, heartbeat, finish. Each is a compare-and-set on the locked row."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from api.errors import Conflict
from api.jobs import service, transitions
from api.jobs.fencing import stale_attempt
from api.jobs.models import ENDED, HELD, Job
from api.jobs.schemas import Beat, Claim, Claimed, Finish, Heartbeat


async def claim(session: AsyncSession, job_name: str, asked: Claim, lease_s: float) -> Claimed:
    """Gives the attempt to the first who asks; everybody else gets a `Conflict`."""
    job = await service.get(session, job_name, lock=True)
    if job.state != "queued" or job.attempt != asked.attempt:
        raise Conflict(
            f"attempt {asked.attempt} is not to be had: the job is {job.state} at attempt {job.attempt}",
            code="not_claimable",
        )
    lease_token = transitions.start(session, job, asked.runner, lease_s)
    await session.flush()
    return Claimed(
        job_id=job.id,
        attempt=job.attempt,
        lease_token=lease_token,
        lease_s=lease_s,
        run_id=job.run_id,
        run_name=job.run.name,
        recipe=job.config,
    )


async def heartbeat(session: AsyncSession, job_name: str, report: Heartbeat, lease_s: float) -> Beat:
    """Renews the lease; also one that has run out, as long as nobody took the job away."""
    job = await _held(session, job_name, report.lease_token)
    if job.state not in HELD:
        raise stale_attempt(f"the job has already {job.state}")
    job.lease_expires_at = transitions.lease_end(lease_s)  # type: ignore[assignment]
    if report.log_tail is not None:
        job.log_tail = report.log_tail
    if report.progress is not None and (report.progress != job.progress or job.state == "starting"):
        job.progress, job.state = report.progress, "running"
        transitions.announce(session, job)
    await session.flush()
    await session.refresh(job, ["lease_expires_at"])
    assert job.lease_expires_at is not None
    return Beat(cancel=job.cancel_requested, lease_expires_at=job.lease_expires_at)


async def finish(session: AsyncSession, job_name: str, report: Finish) -> Job:
    """Ends the attempt. The same report again is accepted; another one after the end is not."""
    job = await _held(session, job_name, report.lease_token)
    if job.state in ENDED:
        if job.state != report.state:
            raise Conflict(f"the job has already {job.state}", code="job_ended")
        return job
    if report.state != "released":
        transitions.end(session, job, report.state, report.error, report.exit_code)
    elif job.cancel_requested:
        transitions.end(session, job, "cancelled", None, report.exit_code)
    else:
        transitions.requeue(session, job)
    await session.flush()
    await session.refresh(job)
    return job


async def _held(session: AsyncSession, job_name: str, lease_token: UUID) -> Job:
    job = await service.get(session, job_name, lock=True)
    if job.lease_token != lease_token:
        raise stale_attempt("this lease has ended and the job may be with another runner")
    return job
