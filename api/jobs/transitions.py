"""The only place where a job's state changes.

queued → starting → running → finished | failed | cancelled. A lease that runs out, or is given back,
leads from starting or running to queued again with the next attempt. All times are the database's.
Callers hold the job's row lock.
"""

from __future__ import annotations

import uuid
from datetime import timedelta

from sqlalchemy import ColumnElement, func
from sqlalchemy.ext.asyncio import AsyncSession

from api.events import service as events
from api.jobs.models import HELD, Job, Outbox


def server_time() -> ColumnElement[object]:
    """The database's clock now. `now()` would be the transaction's start, before it waited for a lock."""
    return func.clock_timestamp()


def lease_end(lease_s: float) -> ColumnElement[object]:
    return func.clock_timestamp() + timedelta(seconds=lease_s)


def announce(session: AsyncSession, job: Job) -> None:
    """Tells live views of the job's state and progress."""
    data = {
        "job_id": str(job.id),
        "run_id": str(job.run_id),
        "run": job.run.name,
        "state": job.state,
        "attempt": job.attempt,
        "progress": job.progress,
    }
    events.append(session, "job.changed", data, run_id=job.run_id)


def wake_up(session: AsyncSession, job: Job, queue: str | None = None) -> None:
    """Has a message sent for the job's current attempt, in the transaction that makes it true.

    It goes to the job's queue, or to `queue`.
    """
    job.published_at = None
    job.n_wake_ups += 1
    session.add(Outbox(job_id=job.id, attempt=job.attempt, queue=queue or job.queue))


def start(session: AsyncSession, job: Job, runner: str, lease_s: float) -> uuid.UUID:
    """Hands the current attempt to a runner; returns its lease token."""
    assert job.state == "queued"
    job.state = "starting"
    job.runner = runner
    job.lease_token = uuid.uuid4()
    job.lease_expires_at = lease_end(lease_s)  # type: ignore[assignment]
    job.held_since = server_time()  # type: ignore[assignment]
    job.started_at = job.started_at or server_time()  # type: ignore[assignment]
    announce(session, job)
    return job.lease_token


def end(session: AsyncSession, job: Job, state: str, error: str | None, exit_code: int | None = None) -> None:
    """Ends the job. The lease token stays: the last attempt may still deliver points and repeat its end."""
    job.state = state
    job.error = error
    job.exit_code = exit_code
    job.lease_expires_at = None
    _book_hours(job)
    job.finished_at = server_time()  # type: ignore[assignment]
    announce(session, job)


def requeue(session: AsyncSession, job: Job) -> None:
    """Begins the next attempt; from the commit on, nothing of the old one is taken."""
    assert job.state in HELD
    job.state = "queued"
    job.attempt += 1
    job.lease_token = None
    job.lease_expires_at = None
    job.runner = job.worker_id = job.devices = None
    _book_hours(job)
    job.queued_at = server_time()  # type: ignore[assignment]
    job.n_wake_ups = 0
    wake_up(session, job)
    announce(session, job)


def _book_hours(job: Job) -> None:
    """Adds the time that the current attempt was held to the job's."""
    if job.held_since is not None:
        held_s = func.extract("epoch", server_time() - Job.held_since)
        job.used_hours = Job.used_hours + held_s / 3600
        job.held_since = None


def lose(session: AsyncSession, job: Job) -> None:
    """What becomes of a job whose lease ran out."""
    job.n_lost += 1
    if job.cancel_requested:
        end(session, job, "cancelled", None)
    elif job.n_lost >= job.max_attempts:
        words = f"lost {job.n_lost} times, last on {job.runner}: the runner stopped answering"
        end(session, job, "failed", words)
    else:
        requeue(session, job)
