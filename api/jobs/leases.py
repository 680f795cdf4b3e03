"""A runner's side of a job: claim, heartbeat, finish. Each is a compare-and-set on the locked row."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import func
from sqlalchemy.ext.asyncio import AsyncSession

from api.errors import Conflict
from api.jobs import commands, service, transitions
from api.jobs.fencing import stale_attempt
from api.jobs.models import ENDED, HELD, Job
from api.jobs.schemas import Beat, Claim, Claimed, Finish, Heartbeat, Resources
from api.settings import Settings
from api.workers import health, wake
from api.workers import service as workers
from api.workers.fit import free_devices, misfit


async def claim(session: AsyncSession, job_name: str, asked: Claim, settings: Settings) -> Claimed:
    """Gives the attempt to the first who asks and has what the job needs; all others get a `Conflict`."""
    job = await service.get(session, job_name, lock=True)
    if job.state != "queued" or job.attempt != asked.attempt:
        raise Conflict(
            f"attempt {asked.attempt} is not to be had: the job is {job.state} at attempt {job.attempt}",
            code="not_claimable",
        )
    if job.kind == "command":
        commands.check_allowed(settings)
    job.devices = await _place(session, job, asked.worker_id)
    job.worker_id = asked.worker_id
    lease_token = transitions.start(session, job, asked.runner, settings.lease_s)
    await session.flush()
    return Claimed(
        job_id=job.id,
        attempt=job.attempt,
        lease_token=lease_token,
        lease_s=settings.lease_s,
        run_id=job.run_id,
        run_name=job.run.name,
        recipe=job.config if job.kind == "recipe" else None,
        command=job.config if job.kind == "command" else None,
        resources=Resources.model_validate(job.resources),
        devices=job.devices,
        max_hours=job.max_hours,
        max_gpu_hours=job.max_gpu_hours,
        used_hours=job.used_hours,
    )


async def _place(session: AsyncSession, job: Job, worker_id: UUID | None) -> list[str] | None:
    """The GPUs that the job gets on this worker; its row stays locked, so that none is given twice."""
    if worker_id is None:
        if Resources.model_validate(job.resources) != Resources():
            raise Conflict(
                "the job asks for resources, which only a registered worker can have; start one with "
                "`rlcast worker`",
                code="does_not_fit",
            )
        return None
    worker = await workers.get(session, str(worker_id), lock=True)
    load = (await health.loads(session, [worker]))[worker.id]
    reason = misfit(job, worker, load)
    if reason is not None:
        await wake.pass_on(session, job, worker)
        await session.commit()  # the refusal below ends the request without one
        raise Conflict(reason, code="does_not_fit")
    worker.last_taken_at = func.clock_timestamp()
    worker.free_since = func.clock_timestamp() if len(load.jobs) + 1 < worker.slots else None
    devices: list[dict[str, Any]] = free_devices(job, worker, load)[: job.resources.get("gpus", 0)]
    return [device["uuid"] for device in devices]


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
        job.stop_reason = report.stop_reason
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
