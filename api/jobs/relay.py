"""Background work on jobs: sends wake-ups, takes expired leases back, sends lost messages again.

Any number of API processes do this at once: each takes rows that no other has locked. A process that dies
between sending and noting it makes the next one send again, which is harmless: the second claim loses.
"""

from __future__ import annotations

import logging
from datetime import timedelta

from sqlalchemy import delete, func, select, update

from api.database import SessionFactory
from api.events.models import Event
from api.jobs import transitions
from api.jobs.models import Job, Outbox
from api.jobs.publisher import Publisher

log = logging.getLogger("api.jobs.relay")

_KEEP_SENT = timedelta(days=1)
_KEEP_EVENTS = timedelta(days=7)
_BATCH = 100


async def relay(sessions: SessionFactory, publisher: Publisher) -> None:
    """Sends all that waits. Raises `BrokerAway` at the first message that cannot be sent."""
    while await _relay_one(sessions, publisher):
        pass


async def _relay_one(sessions: SessionFactory, publisher: Publisher) -> bool:
    """Sends the oldest wake-up that no other process is sending; False when there is none."""
    async with sessions() as session, session.begin():
        query = select(Outbox).where(Outbox.sent_at.is_(None)).order_by(Outbox.id).limit(1)
        row = await session.scalar(query.with_for_update(skip_locked=True))
        if row is None:
            return False
        this_attempt = (Job.id == row.job_id, Job.attempt == row.attempt, Job.state == "queued")
        if await session.scalar(select(Job.id).where(*this_attempt)):  # else nobody needs the message
            await publisher.send(row.job_id, row.attempt, row.queue)
            stamp = update(Job).where(*this_attempt).values(published_at=func.clock_timestamp())
            await session.execute(stamp.execution_options(synchronize_session=False))
        row.sent_at = func.clock_timestamp()
        return True


async def take_back_expired(sessions: SessionFactory) -> int:
    """Requeues or fails the jobs whose lease has run out; returns how many."""
    async with sessions() as session, session.begin():
        query = select(Job).where(Job.lease_expires_at < func.clock_timestamp()).limit(_BATCH)
        jobs = (await session.scalars(query.with_for_update(of=Job, skip_locked=True))).all()
        for job in jobs:
            runner, attempt = job.runner, job.attempt
            transitions.lose(session, job)
            log.warning(
                "job %s: attempt %d on %s ran out of its lease; now %s at attempt %d",
                job.id, attempt, runner, job.state, job.attempt,
            )  # fmt: skip
        return len(jobs)


async def send_again(sessions: SessionFactory, resend_s: float) -> int:
    """Wakes runners again for jobs whose message was sent and that nobody claimed; returns how many.

    Most of them wait because all runners are busy, and their first message is still there. So each further
    one comes after twice the time, up to eight times `resend_s`: a queue of a day stays short.
    """
    async with sessions() as session, session.begin():
        patience = func.power(2, func.least(func.greatest(Job.n_wake_ups - 1, 0), 3))
        too_old = func.clock_timestamp() - patience * timedelta(seconds=resend_s)
        query = select(Job).where(Job.state == "queued", Job.published_at < too_old).limit(_BATCH)
        jobs = (await session.scalars(query.with_for_update(of=Job, skip_locked=True))).all()
        for job in jobs:
            transitions.wake_up(session, job)
        return len(jobs)


async def purge(sessions: SessionFactory) -> None:
    """Removes sent wake-ups and events that nobody needs any more."""
    async with sessions() as session, session.begin():
        await session.execute(delete(Outbox).where(Outbox.sent_at < func.now() - _KEEP_SENT))
        await session.execute(delete(Event).where(Event.created_at < func.now() - _KEEP_EVENTS))
