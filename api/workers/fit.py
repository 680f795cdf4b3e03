"""Whether a job can run on a worker now: the one rule for claims, wake-ups and health."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from api.jobs.models import Job
from api.workers.models import Worker


@dataclass(frozen=True)
class Load:
    """The jobs that a worker holds, and the GPUs that any job holds.

    The latter are counted for all workers: a job of a killed worker has its GPUs until its lease runs out,
    also when the worker has been started again meanwhile.
    """

    jobs: tuple[Job, ...]
    devices: frozenset[str]


def misfit(job: Job, worker: Worker, load: Load) -> str | None:
    """Why `job` cannot run on `worker` beside what runs there; None when it can."""
    asked = job.resources
    if worker.drain_requested or worker.state in ("draining", "gone"):
        return f"worker {worker.name} is {'gone' if worker.state == 'gone' else 'draining'}"
    if job.queue not in worker.queues:
        return f"the job waits in queue {job.queue!r}; worker {worker.name} reads {', '.join(worker.queues)}"
    for key, value in asked.get("labels", {}).items():
        if worker.labels.get(key) != value:
            return f"the job asks for label {key}={value}; worker {worker.name} does not have it"
    if (asked.get("cpus") or 0) > worker.cpus:
        return f"the job asks for {asked['cpus']} CPUs; worker {worker.name} has {worker.cpus}"
    return _misfit_now(job, worker, load)


def _misfit_now(job: Job, worker: Worker, load: Load) -> str | None:
    """As `misfit`, of what other jobs on the worker leave free."""
    asked = job.resources
    if len(load.jobs) >= worker.slots:
        return f"worker {worker.name} runs {len(load.jobs)} jobs already, of at most {worker.slots}"
    memory_gib = asked.get("memory_gib") or 0
    free_gib = worker.memory_gib - sum(other.resources.get("memory_gib") or 0 for other in load.jobs)
    if memory_gib > free_gib:
        return f"the job asks for {memory_gib:g} GiB; worker {worker.name} has {free_gib:.0f} GiB free"
    n_free = len(free_devices(job, worker, load))
    if asked.get("gpus", 0) > n_free:
        size = f" of {asked['gpu_memory_gib']:g} GiB" if asked.get("gpu_memory_gib") else ""
        return f"the job asks for {asked['gpus']} GPUs{size}; worker {worker.name} has {n_free} free"
    return None


def free_devices(job: Job, worker: Worker, load: Load) -> list[dict[str, Any]]:
    """The worker's GPUs that no job holds and that are large enough, in its own order."""
    least_gib = job.resources.get("gpu_memory_gib") or 0
    return [d for d in worker.devices if d["uuid"] not in load.devices and d["memory_gib"] >= least_gib]
