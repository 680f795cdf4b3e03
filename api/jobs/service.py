"""Submitting, reading and cancelling jobs. What a runner does with them is in `leases`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import ValidationError
from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncSession

import rlcast.recipe
from api.audit import service as audit
from api.errors import Conflict, Invalid, NotFound
from api.jobs import commands, transitions
from api.jobs.models import ENDED, Job
from api.jobs.schemas import Command, JobCreate, Resources
from api.lookup import parse_id
from api.paging import Sort, fetch_page
from api.recipes import service as recipes
from api.recipes.models import Recipe
from api.runs import service as runs
from api.runs.models import Run
from api.runs.schemas import RunCreate
from api.settings import Settings


@dataclass(frozen=True)
class Plan:
    """A checked job. `run` holds the fields of its run but for the name; `config` is what it will execute."""

    kind: Literal["recipe", "command"]
    recipe: str
    description: str | None
    config: dict[str, Any]
    resources: Resources
    run: dict[str, Any]


async def submit(session: AsyncSession, fields: JobCreate, settings: Settings) -> Job:
    """Makes recipe version, run, job and wake-up in the session's transaction.

    Raises `Invalid` with the recipe's errors, `Conflict` when the name is taken by another run, `Forbidden`
    for a command where the service does not allow them.
    """
    if fields.command is not None:
        commands.check_allowed(settings)
        plan = _command_plan(fields.command, fields.resources or Resources())
    else:
        plan = await _recipe_plan(session, fields)
    if fields.max_gpu_hours is not None and not plan.resources.gpus:
        raise Invalid.field("max_gpu_hours", "the job holds no GPU; use max_hours, or ask for gpus")
    recipe, _ = await recipes.get_or_create(session, plan.recipe, plan.config, plan.description)
    run = await _make_run(session, recipe, plan, fields.name)
    job = _new_job(run, recipe, plan, fields)
    job.max_attempts = settings.max_attempts
    session.add(job)
    await session.flush()
    transitions.wake_up(session, job)
    transitions.announce(session, job)
    audit.note(session, "job.submitted", job.name, job_id=str(job.id), recipe=recipe.name)
    if fields.command is not None:
        details = commands.audit_details(fields.command)
        audit.note(session, "command.submitted", job.name, job_id=str(job.id), **details)
    await session.flush()
    await session.refresh(job)
    return job


def _new_job(run: Run, recipe: Recipe, plan: Plan, fields: JobCreate) -> Job:
    job = Job(name=run.name, run=run, recipe_id=recipe.id, config=plan.config, kind=plan.kind)
    job.state, job.attempt, job.cancel_requested = "queued", 1, False
    job.n_lost = job.n_wake_ups = 0
    job.max_hours, job.max_gpu_hours, job.used_hours = fields.max_hours, fields.max_gpu_hours, 0.0
    job.resources = plan.resources.model_dump(mode="json")
    job.queue = fields.queue or ("gpu" if plan.resources.gpus else "cpu")
    return job


async def _recipe_plan(session: AsyncSession, fields: JobCreate) -> Plan:
    assert fields.recipe is not None
    checked = _check(_with_overrides(await _config(session, fields.recipe), fields.overrides))
    on_gpus = checked.compute_unit == "gpu_hours"
    return Plan(
        kind="recipe",
        recipe=checked.name,
        description=checked.description or None,
        config=checked.model_dump(mode="json"),  # with the defaults that this version of the code has
        resources=fields.resources or Resources(gpus=checked.devices_held if on_gpus else 0),
        run={
            "benchmark": checked.benchmark,
            "compute_unit": checked.compute_unit,
            "model": checked.model.kind,
            "task": checked.task.kind,
            "seed": checked.seed,
        },
    )


def _command_plan(command: Command, resources: Resources) -> Plan:
    config = commands.config_of(command, resources)
    fields = ("benchmark", "compute_unit", "model", "task", "seed")
    return Plan(
        kind="command",
        recipe=commands.recipe_name(command),
        description=None,
        config=config,
        resources=resources,
        run={name: config[name] for name in fields},
    )


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


async def _make_run(session: AsyncSession, recipe: Recipe, plan: Plan, name: str | None) -> Run:
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
            name=name or f"{recipe.name[:190]}-{number}", recipe=recipe.name, source="job", **plan.run
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
