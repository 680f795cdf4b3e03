"""Keeps the writes of an older attempt out, also while a newer one is being handed out."""

from __future__ import annotations

import uuid

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from api.errors import Conflict
from api.jobs.models import Job


def stale_attempt(detail: str) -> Conflict:
    return Conflict(f"{detail}; stop writing for it", code="stale_attempt")


async def check_attempt(
    session: AsyncSession,
    run_id: uuid.UUID,
    attempt: int,
    job_id: uuid.UUID | None,
    lease_token: uuid.UUID | None,
) -> None:
    """Raises `Conflict` when the run's job, if it has one, is no longer at this attempt.

    The job's row stays locked in shared mode until the commit: the next attempt can only begin after
    this write is done. An ended job still takes the rest of its last attempt's points.
    """
    query = select(Job.id, Job.attempt, Job.lease_token).where(Job.run_id == run_id)
    job = (await session.execute(query.with_for_update(read=True))).one_or_none()
    if job is None:
        if job_id is not None or lease_token is not None:
            raise Conflict("this run belongs to no job; leave job_id and lease_token out", code="wrong_job")
        return
    if job_id is not None and job_id != job.id:
        raise Conflict("this run belongs to another job", code="wrong_job")
    if attempt != job.attempt:
        raise stale_attempt(f"attempt {attempt} of job {job.id} is not the current one ({job.attempt})")
    if lease_token is not None and lease_token != job.lease_token:
        raise stale_attempt(f"this lease of job {job.id} has ended")
