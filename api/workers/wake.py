"""Wake-ups for one worker.

A message in a shared queue goes to whoever takes it first, and that worker may lack what the job needs. So a
worker with a free slot gets a message of its own for a job that fits and that nobody has taken.
"""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncSession

from api.jobs import transitions
from api.jobs.models import Job
from api.settings import Settings
from api.workers.fit import misfit
from api.workers.health import allowed, loads
from api.workers.models import Worker

#: A message in a shared queue that no fitting worker has taken after this long has gone astray.
_ASTRAY_S = 3.0
_LOOK_AT = 50


async def wake_for(session: AsyncSession, worker: Worker, settings: Settings) -> Job | None:
    """Addresses the job that waits longest and fits to `worker`; None when there is none.

    Each further message for a job comes after twice the time, so that a worker that takes nothing does not
    fill its queue.
    """
    patience_s = _ASTRAY_S * func.power(2, func.least(func.greatest(Job.n_wake_ups - 1, 0), 6))
    too_old = func.clock_timestamp() - patience_s * timedelta(seconds=1)
    query = select(Job).where(Job.state == "queued", Job.published_at < too_old, allowed(settings))
    query = query.where(Job.queue.in_(worker.queues)).order_by(Job.queued_at).limit(_LOOK_AT)
    load = (await loads(session, [worker]))[worker.id]
    # Rows that somebody else works on are skipped: a claim takes job and worker in the other order.
    for job in await session.scalars(query.with_for_update(of=Job, skip_locked=True)):
        if misfit(job, worker, load) is None:
            transitions.wake_up(session, job, worker.own_queue)
            return job
    return None


async def pass_on(session: AsyncSession, job: Job, refused: Worker) -> Worker | None:
    """Addresses `job`, whose message reached a worker that cannot run it, to one that can, if any is free."""
    query = select(Worker).where(Worker.free_since.is_not(None), Worker.id != refused.id)
    others = (await session.scalars(query.order_by(Worker.free_since).limit(200))).all()
    load = await loads(session, others)
    for other in others:
        if misfit(job, other, load[other.id]) is None:
            transitions.wake_up(session, job, other.own_queue)
            return other
    return None
