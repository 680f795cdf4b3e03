"""Fetches what the Compare page shows: points of the chosen curves and the service's forecasts of them."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from web.compare_state import CompareState
from web.compare_view import RunItem, newest_version, points_only, run_item
from web.gateway import MAX_LISTED, Gateway, Problem
from web.recipe_view import Differences, differences

#: Evaluations of one run that the page reads; a run has a few hundred at most.
MAX_EVALUATIONS = 5000


@dataclass
class Chosen:
    """One curve to show: a run, or all runs of a recipe pooled (`recipe_pooled`)."""

    name: str
    recipe: str
    runs: list[RunItem]
    recipe_pooled: bool = False
    evaluations: list[dict[str, Any]] = field(default_factory=list)

    def points(self, unit: str) -> list[tuple[float, float, int | None, int | None]]:
        """(compute, pass rate, prompts, samples) of evaluations that carry `unit`, by compute."""
        rows = [
            (float(e["compute"][unit]), float(e["pass_rate"]), e.get("n_prompts"), e.get("n_samples"))
            for e in self.evaluations
            if unit in e["compute"]
        ]
        return sorted(rows, key=lambda row: row[0])


@dataclass
class Comparison:
    """The page's forecasts in the order of the choice, and what went wrong by field."""

    unit: str
    at: float | None
    forecasts: list[dict[str, Any]]
    baseline: float | dict[str, Any] | None
    run_ids: list[str]
    errors: dict[str, str]
    different: Differences
    pair: dict[str, Any] | None = None


async def list_runs(gateway: Gateway) -> list[RunItem]:
    """Runs, newest first, with those marked live whose job is running."""
    runs, jobs = await asyncio.gather(
        gateway.items("/runs", MAX_LISTED), gateway.items("/jobs", 100, state="running")
    )
    live = {job["run_id"] for job in jobs}
    return [run_item(run, run["id"] in live) for run in runs]


async def compare(gateway: Gateway, runs: Sequence[RunItem], state: CompareState) -> Comparison:
    """Forecasts every chosen curve; a curve that cannot be forecast keeps its points and says why."""
    errors = dict(state.errors)
    chosen = choose(runs, state, errors)
    await asyncio.gather(*(load_evaluations(gateway, curve, state.benchmark) for curve in chosen))
    unit = state.unit or next((run.unit for curve in chosen for run in curve.runs), "gpu_hours")
    at = state.at or _default_budget(chosen, unit)
    forecasts, baseline, different, pair = await asyncio.gather(
        asyncio.gather(*(forecast_curve(gateway, curve, state, unit, at) for curve in chosen)),
        _baseline(gateway, state, unit, errors),
        _differences(gateway, chosen),
        _pair(gateway, chosen, state, unit),
    )
    run_ids = [run.id for curve in chosen for run in curve.runs]
    return Comparison(unit, at, list(forecasts), baseline, run_ids, errors, different, pair)


def choose(runs: Sequence[RunItem], state: CompareState, errors: dict[str, str]) -> list[Chosen]:
    """The curves that the state names; names that are not found go to `errors`."""
    by_name = {run.name: run for run in runs} | {run.id: run for run in runs}
    chosen = []
    missing = [name for name in state.runs if name not in by_name]
    for name in state.recipes:
        if members := [run for run in runs if run.recipe == name]:
            chosen.append(Chosen(name, name, newest_version(members), recipe_pooled=True))
        else:
            missing.append(name)
    chosen += [Chosen(run.name, run.recipe, [run]) for name in state.runs if (run := by_name.get(name))]
    if missing:
        errors["run"] = f"not found: {', '.join(missing[:5])}; choose from the list"
    return chosen


async def load_evaluations(gateway: Gateway, curve: Chosen, benchmark: str | None) -> None:
    async def one(run: RunItem) -> list[dict[str, Any]]:
        chosen = benchmark or run.benchmark
        return await gateway.remembered.get(
            ("evaluations", run.id, run.stamp, chosen),
            lambda: gateway.items(f"/runs/{run.id}/evaluations", MAX_EVALUATIONS, 1000, benchmark=chosen),
        )

    curve.evaluations = [e for part in await asyncio.gather(*map(one, curve.runs)) for e in part]


def _default_budget(chosen: Sequence[Chosen], unit: str) -> float | None:
    """Twice the most compute seen, rounded to one digit: the next decision is often about doubling."""
    seen = [row[0] for curve in chosen for row in curve.points(unit) if row[0] > 0]
    if not seen:
        return None
    double = 2 * max(seen)
    return float(f"{double:.0e}") if math.isfinite(double) else None


async def forecast_curve(
    gateway: Gateway, curve: Chosen, state: CompareState, unit: str, at: float | None
) -> dict[str, Any]:
    extra = {"recipe": curve.recipe, "run_id": None if curve.recipe_pooled else curve.runs[0].id}
    points = curve.points(unit)
    if not points:
        have = sorted({name for e in curve.evaluations for name in e["compute"]})
        why = f"has compute in {', '.join(have)}, not in {unit}" if have else "has no evaluation yet"
        return points_only(curve.name, unit, [], why, **extra)
    try:
        answer = await _ask(gateway, curve, forecast_request(curve, state, unit, at))
    except Problem as problem:
        return points_only(curve.name, unit, [(c, r) for c, r, _, _ in points], problem.line, **extra)
    forecast: dict[str, Any] = {**answer["forecasts"][0], **extra, "run": curve.name}
    forecast["points"] = with_samples(forecast["points"], points)
    return forecast


async def _pair(
    gateway: Gateway, chosen: Sequence[Chosen], state: CompareState, unit: str
) -> dict[str, Any] | None:
    """What the first of two chosen curves changes against the second; None for more, fewer, or too short ones."""
    if len(chosen) != 2:
        return None
    names = [curve.name if curve.recipe_pooled else curve.runs[0].id for curve in chosen]
    body = forecast_request(chosen[0], state, unit, None)
    keys = ("law", "level", "benchmark", "min_compute", "max_compute")
    kept: dict[str, Any] = {key: body[key] for key in keys if key in body}
    body = {"candidate": names[0], "baseline": names[1], "unit": unit, "margin": state.margin, **kept}
    if state.reach:
        body["reach"] = state.reach
    stamps = tuple((run.id, run.stamp) for curve in chosen for run in curve.runs)
    key = ("pair", stamps, json.dumps(body, sort_keys=True))
    try:
        found: dict[str, Any] = await gateway.remembered.get(key, lambda: gateway.post("/comparisons", body))
    except Problem:
        return None  # each curve says itself what is missing
    return {**found, "names": [curve.name for curve in chosen]}


async def _ask(gateway: Gateway, curve: Chosen, body: dict[str, Any]) -> dict[str, Any]:
    """The service's answer; asked once for the same points and options."""
    stamps = tuple((run.id, run.stamp) for run in curve.runs)
    key = ("forecast", stamps, json.dumps(body, sort_keys=True))
    answer: dict[str, Any] = await gateway.remembered.get(key, lambda: gateway.post("/forecasts", body))
    return answer


def forecast_request(curve: Chosen, state: CompareState, unit: str, at: float | None) -> dict[str, Any]:
    """The body of `POST /forecasts` for one curve."""
    body: dict[str, Any] = {
        "recipes" if curve.recipe_pooled else "runs": [
            curve.name if curve.recipe_pooled else curve.runs[0].id
        ],
        "unit": unit,
        "law": state.law,
        "level": state.level,
        "at": [at] if at else [],
        "reach": [state.reach] if state.reach else [],
        "benchmark": state.benchmark,
        "min_compute": state.min_compute,
        "max_compute": state.max_compute,
    }
    return {key: value for key, value in body.items() if value is not None}


def with_samples(
    points: dict[str, Any], rows: Sequence[tuple[float, float, int | None, int | None]]
) -> dict[str, Any]:
    """The forecast's points with the numbers of prompts and samples that they were measured with."""
    known = {(compute, rate): (prompts, samples) for compute, rate, prompts, samples in rows}
    found = [
        known.get(pair, (None, None)) for pair in zip(points["compute"], points["pass_rate"], strict=True)
    ]
    return {
        **points,
        "n_prompts": [prompts for prompts, _ in found],
        "n_samples": [samples for _, samples in found],
    }


async def _differences(gateway: Gateway, chosen: Sequence[Chosen]) -> Differences:
    """In what the chosen curves' recipes differ. A stored version never changes, so it is asked for once."""
    ids = dict.fromkeys(run.recipe_id for curve in chosen for run in curve.runs)

    async def one(recipe_id: str) -> dict[str, Any]:
        path = f"/recipes/{recipe_id}"
        found: dict[str, Any] = await gateway.remembered.get(("recipe", recipe_id), lambda: gateway.get(path))
        return found

    return differences(await asyncio.gather(*map(one, ids)))


async def _baseline(
    gateway: Gateway, state: CompareState, unit: str, errors: dict[str, str]
) -> float | dict[str, Any] | None:
    """The baseline as a number, or as the forecast of the run or recipe that it names."""
    if state.baseline is None:
        return None
    try:
        value = float(state.baseline)
    except ValueError:
        return await _named_baseline(gateway, state, unit, errors)
    if not 0 < value <= 1:
        errors["baseline"] = "a baseline number is a pass rate above 0 and up to 1"
        return None
    return value


async def _named_baseline(
    gateway: Gateway, state: CompareState, unit: str, errors: dict[str, str]
) -> dict[str, Any] | None:
    problem: Problem | None = None
    for kind in ("runs", "recipes"):
        body = {kind: [state.baseline], "unit": unit, "law": state.law, "level": state.level}
        try:
            forecast: dict[str, Any] = (await gateway.post("/forecasts", body))["forecasts"][0]
        except Problem as error:
            problem = error if problem is None or problem.status == 404 else problem
            continue
        forecast["run"] = state.baseline
        if forecast["verdict"]["state"] == "identified" and "A" in forecast["parameters"]:
            return forecast
        errors["baseline"] = f"A of {state.baseline} is not identified; give a pass rate instead"
        return None
    errors["baseline"] = problem.line if problem else "not found"
    return None
