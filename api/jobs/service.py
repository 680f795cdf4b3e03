"""Submitting, reading and cancelling jobs. What a runner does with them is in `leases`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError
from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncSession

import rlcast.recipe
from api.audit import service as audit
from api.errors import Conflict, Invalid, NotFound
from api.jobs import transitions
from api.jobs.models import ENDED, Job
from api.jobs.schemas import JobCreate, Resources
from api.lookup import parse_id
from api.paging import Sort, fetch_page
from api.recipes import service as recipes
from api.recipes.models import Recipe
from api.runs import service as runs
from api.runs.models import Run
from api.runs.schemas import RunCreate


async def submit(session: AsyncSession, fields: JobCreate, max_attempts: int) -> Job:
    """Makes recipe version, run, job and wake-up in the session's transaction.

    Raises `Invalid` with the recipe's errors, `Conflict` when the name is taken by another run.
    """
    config = _with_overrides(await _config(session, fields.recipe), fields.overrides)
    checked = _check(config)
    config = checked.model_dump(mode="json")  # with the defaults that this version of the code has
    recipe, _ = await recipes.get_or_create(session, checked.name, config, checked.description or None)
    run = await _make_run(session, recipe, checked, fields.name)
    job = Job(name=run.name, run=run, recipe_id=recipe.id, config=config, max_attempts=max_attempts)
    job.state, job.attempt, job.cancel_requested = "queued", 1, False
    job.n_lost = job.n_wake_ups = 0
    job.max_hours, job.max_gpu_hours, job.used_hours = fields.max_hours, fields.max_gpu_hours, 0.0
    resources = fields.resources or _resources_of(checked)
    if fields.max_gpu_hours is not None and not resources.gpus:
        raise Invalid.field("max_gpu_hours", "the job holds no GPU; use max_hours, or ask for gpus")
    job.resources = resources.model_dump(mode="json")
    job.queue = fields.queue or ("gpu" if resources.gpus else "cpu")
    session.add(job)
    await session.flush()
    transitions.wake_up(session, job)
    transitions.announce(session, job)
    audit.note(session, "job.submitted", job.name, job_id=str(job.id), recipe=recipe.name)
    await session.flush()
    await session.refresh(job)
    return job


def _resources_of(recipe: rlcast.recipe.Recipe) -> Resources:
    """What a recipe needs when its submitter does not say."""
    on_gpus = recipe.compute_unit == "gpu_hours"
    return Resources(gpus=recipe.devices_held if on_gpus else 0)


async def _config(session: AsyncSession, recipe: dict[str, Any] | str) -> dict[str, Any]:
    if isinstance(recipe, dict):
        return recipe
    found = await recipes.get(session, recipe)
    if found.config is None:
        raise Invalid.field("recipe", f"{recipe!r} is known by name only; send its configuration")
    return found.config


def _with_overrides(config: dict[str, Any], overrides: dict[str, Any]) -> dict[str, Any]:
    changed: dict[str, Any] = json.loads(json.dumps(config))
    for path, value in overrides.items():
        *parents, last = path.split(".")
        part = changed
        for parent in parents:
            part = part.setdefault(parent, {})
            if not isinstance(part, dict):
                raise Invalid.field(f"overrides.{path}", f"{parent} holds a value, not a group of options")
        part[last] = value
    return changed


def _check(config: dict[str, Any]) -> rlcast.recipe.Recipe:
    try:
        return rlcast.recipe.Recipe.model_validate(config)
    except ValidationError as error:
        errors = [(f"recipe.{e['field']}", e["message"]) for e in rlcast.recipe.recipe_errors(error)]
        raise Invalid(f"{errors[0][0]}: {errors[0][1]}", code="invalid_recipe", errors=errors) from None


async def _make_run(
    session: AsyncSession, recipe: Recipe, checked: rlcast.recipe.Recipe, name: str | None
) -> Run:
    """The job's run, under `name` or the next free `<recipe>-<n>`.

    The recipe's lock, held since `get_or_create`, lets requests for one recipe take turns.
    """
    number = (
        await session.scalar(
            select(func.count()).select_from(Run).join(Run.recipe).where(Recipe.name == recipe.name)
        )
        or 0
    )
    while True:
        number += 1
        fields = RunCreate(
            name=name or f"{recipe.name[:190]}-{number}",
            recipe=recipe.name,
            benchmark=checked.benchmark,
            compute_unit=checked.compute_unit,  # type: ignore[arg-type]  # one of the units we know
            model=checked.model.kind,
            task=checked.task.kind,
            seed=checked.seed,
            source="job",
        )
        run = await runs.insert_new(session, recipe, fields)
        if run is not None:
            return run
        if name is not None:
            raise Conflict(
                f"a run named {name!r} exists; choose another name, or leave it out to get one",
                code="run_exists",
                errors=[("name", "is taken")],
            )


async def get(session: AsyncSession, job: str, *, lock: bool = False) -> Job:
    """A job by id, or by its run's name. Raises `NotFound`. `lock` takes its row until the commit."""
    job_id = parse_id(job)
    query = select(Job).where((Job.name == job) | (Job.id == job_id if job_id else False))
    if lock:
        query = query.with_for_update(of=Job).execution_options(populate_existing=True)
    found = await session.scalar(query)
    if found is None:
        raise NotFound.named("job", job)
    return found


async def page(
    session: AsyncSession, *, state: str | None = None, limit: int = 100, cursor: str | None = None
) -> tuple[Sequence[Job], str | None]:
    """Jobs, newest first, and the cursor of the next page."""
    query = select(Job)
    if state is not None:
        query = query.where(Job.state == state)
    return await fetch_page(session, query, Sort(Job.created_at), Job.id, limit, cursor)


async def cancel(session: AsyncSession, job_name: str) -> Job:
    """Cancels a queued job at once; asks the runner of a running one to stop."""
    job = await get(session, job_name, lock=True)
    if not job.cancel_requested and job.state not in ENDED:
        audit.note(session, "job.cancelled", job.name, job_id=str(job.id))
    if job.state in ENDED and job.state != "cancelled":
        raise Conflict(f"this job has already {job.state}; there is nothing to cancel", code="job_ended")
    if job.state == "queued":
        job.cancel_requested = True
        transitions.end(session, job, "cancelled", None)
    elif job.state != "cancelled" and not job.cancel_requested:
        job.cancel_requested = True
        transitions.announce(session, job)
    await session.flush()
    await session.refresh(job)
    return job
