"""From stored evaluations to forecasts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np
from sqlalchemy.ext.asyncio import AsyncSession

from api.errors import Invalid, NotFound
from api.evaluations import service as evaluations
from api.evaluations.models import Evaluation
from api.forecasts.pool import Forecaster
from api.forecasts.schemas import FitOptions, ForecastRequest
from api.forecasts.worker import CurveData, ForecastTask
from api.lookup import parse_id
from api.recipes import service as recipes
from api.recipes.models import Recipe
from api.runs import service as runs
from api.runs.models import Run


@dataclass(frozen=True)
class Subject:
    """What is to be forecast: one run, or a recipe from all its runs."""

    name: str
    runs: tuple[Run, ...]
    recipe: Recipe | None = None

    @property
    def run_id(self) -> UUID | None:
        return None if self.recipe else self.runs[0].id

    @property
    def recipe_id(self) -> UUID | None:
        return self.recipe.id if self.recipe else None


@dataclass(frozen=True)
class Axes:
    """What all curves of one request share: they could not be compared otherwise."""

    benchmark: str
    unit: str


async def recipe_subject(session: AsyncSession, recipe: str) -> Subject:
    """All runs of one version of a recipe: the one with this id, or the newest that has evaluations.

    Versions are never mixed: they are different trainings. Raises `NotFound`, or `Invalid` when there are
    no evaluations.
    """
    found = await recipes.get(session, recipe)
    by_id = parse_id(recipe) == found.id
    version = found if by_id else await recipes.newest_evaluated(session, found.name)
    members = await runs.of_recipe(session, version) if version else []
    if version is None or not members:
        raise Invalid.field("recipe", f"no run of {found.name!r} has evaluations yet")
    return Subject(version.name, tuple(members), version)


async def subject_named(session: AsyncSession, name: str) -> Subject:
    """A run of this name or id, else a recipe."""
    found = await find_subject(session, name)
    if found is None:
        raise NotFound(f"no run or recipe named {name!r}; GET /api/v1/runs and /api/v1/recipes list them")
    return found


async def find_subject(session: AsyncSession, name: str) -> Subject | None:
    """As `subject_named`, but None when there is neither."""
    run = await runs.find(session, name)
    if run is not None:
        return Subject(run.name, (run,))
    if await recipes.find(session, name) is None:
        return None
    return await recipe_subject(session, name)


def common_axes(members: Iterable[Run], options: FitOptions) -> Axes:
    """Benchmark and unit of all runs. Raises `Invalid` when they differ and the request does not choose."""
    found = list(members)
    benchmarks = sorted({options.benchmark} if options.benchmark else {run.benchmark for run in found})
    units = sorted({options.unit} if options.unit else {run.compute_unit for run in found})
    if len(units) > 1:
        raise Invalid.field(
            "unit", f"the runs have compute in {' and '.join(units)}; choose one that all of them carry"
        )
    if len(benchmarks) > 1:
        raise Invalid.field("benchmark", f"the runs were scored on {' and '.join(benchmarks)}; choose one")
    return Axes(benchmarks[0], units[0])


async def curve_of(session: AsyncSession, run: Run, axes: Axes) -> CurveData:
    """Every evaluation of a run on these axes. Raises `Invalid` when some do not carry the unit."""
    rows = await evaluations.all_of(session, run, axes.benchmark)
    without = sum(axes.unit not in row.compute for row in rows)
    if without:
        raise Invalid.field(
            "unit", f"{without} of {len(rows)} evaluations of run {run.name!r} carry no {axes.unit}"
        )
    return CurveData(
        name=run.name,
        unit=axes.unit,
        compute=tuple(float(row.compute[axes.unit]) for row in rows),
        pass_rate=tuple(row.pass_rate for row in rows),
        n_prompts=_if_all(rows, "n_prompts"),
        n_samples=_if_all(rows, "n_samples"),
        score_sd=_score_sd(rows),
    )


def _score_sd(rows: Sequence[Evaluation]) -> tuple[float, ...] | None:
    """The sampling error of each score from its per-prompt counts, when every evaluation has them."""
    if any(row.solved is None or (row.n_samples or 0) < 2 for row in rows):
        return None
    from fitting.noise import sampling_sd

    return tuple(sampling_sd(np.asarray(row.solved), row.n_samples or 0) for row in rows)


def _if_all(rows: Sequence[Evaluation], name: str) -> tuple[int, ...] | None:
    values = [getattr(row, name) for row in rows]
    return None if None in values else tuple(values)


async def task_of(
    session: AsyncSession, subject: Subject, axes: Axes, options: FitOptions, **more: Any
) -> ForecastTask:
    """Reads the points that a forecast needs."""
    curves = [await curve_of(session, run, axes) for run in subject.runs]
    names = ("law", "min_compute", "max_compute", "level", "seed", "loss", "seed_sd")
    fit = {name: getattr(options, name) for name in names}
    return ForecastTask(
        name=subject.name,
        curves=tuple(curves),
        pooled=subject.recipe is not None,
        options={**fit, "benchmark": axes.benchmark, **more},
    )


async def prepare(session: AsyncSession, asked: ForecastRequest) -> list[tuple[Subject, ForecastTask]]:
    """Everything that a request needs from the database, in the order: runs, then recipes."""
    subjects = []
    for name in asked.runs:
        run = await runs.get(session, name)
        subjects.append(Subject(run.name, (run,)))
    for name in asked.recipes:
        subjects.append(await recipe_subject(session, name))
    axes = common_axes((run for subject in subjects for run in subject.runs), asked)
    names = ("replicates", "bands", "price", "worth", "details")
    more = {
        "at": tuple(asked.at),
        "reach": tuple(asked.reach),
        **{name: getattr(asked, name) for name in names},
    }
    return [(subject, await task_of(session, subject, axes, asked, **more)) for subject in subjects]


async def make(
    forecaster: Forecaster, prepared: Sequence[tuple[Subject, ForecastTask]]
) -> list[dict[str, Any]]:
    """`Forecast.to_dict()` of each, in order; no database session is needed any more."""

    async def one(subject: Subject, task: ForecastTask) -> dict[str, Any]:
        try:
            answer = await forecaster.forecast(task)
        except Invalid as problem:
            if len(prepared) == 1:
                raise
            [error] = problem.errors
            raise Invalid.field(error.field, f"{subject.name}: {error.message}") from None
        return answer

    return list(await asyncio.gather(*(one(subject, task) for subject, task in prepared)))
