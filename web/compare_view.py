"""From stored runs and forecasts to what the Compare page's templates show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rlcast.figure_style import Theme
from rlcast.figures import styles_of
from web.compare_state import CompareState
from web.words import Verdict, gain_text, laws_text, reach_text, verdict_of

ForecastDict = Mapping[str, Any]

#: How many curves a page without a choice in its address starts with.
N_DEFAULT = 4


@dataclass(frozen=True)
class RunItem:
    """A run in the list of what can be chosen. `stamp` changes whenever its evaluations do."""

    id: str
    name: str
    recipe: str
    benchmark: str
    unit: str
    n_evaluations: int
    live: bool
    version: int = 1
    recipe_id: str = ""
    stamp: str = ""
    chosen: bool = False


@dataclass(frozen=True)
class RecipeGroup:
    """A recipe in that list; `n_pooled` is how many runs its pooled forecast has."""

    name: str
    runs: tuple[RunItem, ...]
    n_pooled: int
    chosen: bool = False


def newest_version(runs: Sequence[RunItem]) -> list[RunItem]:
    """The runs of a recipe that are pooled: those of its newest version, as the service does."""
    newest = max(run.version for run in runs)
    return [run for run in runs if run.version == newest]


def default_runs(runs: Sequence[RunItem]) -> tuple[str, ...]:
    """The newest runs that can stand on one chart. `runs` are newest first."""
    shown = [run for run in runs if run.n_evaluations > 0]
    if not shown:
        return tuple(run.name for run in runs[:1])
    first = shown[0]
    alike = [run.name for run in shown if (run.unit, run.benchmark) == (first.unit, first.benchmark)]
    return tuple(alike[:N_DEFAULT])


def resolve(state: CompareState, runs: Sequence[RunItem]) -> CompareState:
    """The state as the page can show it: the newest runs if none were chosen, and names as in the service,
    where a name is a run's first and then a recipe's."""
    if not state.chosen:
        return replace(state, runs=default_runs(runs))
    known = {run.name for run in runs} | {run.id for run in runs}
    recipes = {run.recipe for run in runs}
    moved = tuple(name for name in state.runs if name not in known and name in recipes)
    return replace(
        state,
        runs=tuple(name for name in state.runs if name not in moved),
        recipes=tuple(dict.fromkeys(state.recipes + moved)),
    )


def groups_of(runs: Sequence[RunItem], state: CompareState) -> list[RecipeGroup]:
    """Runs by recipe, in the order of each recipe's newest run, with the state's choice marked."""
    by_recipe: dict[str, list[RunItem]] = {}
    for run in runs:
        by_recipe.setdefault(run.recipe, []).append(
            replace(run, chosen=run.name in state.runs or run.id in state.runs)
        )
    return [
        RecipeGroup(name, tuple(items), len(newest_version(items)), name in state.recipes)
        for name, items in by_recipe.items()
    ]


@dataclass(frozen=True)
class Row:
    """One curve in the verdict list and in the table of numbers."""

    name: str
    href: str | None
    colour: str
    marker: str
    verdict: Verdict
    error: str | None
    A: Mapping[str, float | None] | None
    B: Mapping[str, float | None] | None
    Cmid: Mapping[str, float | None] | None
    at: Mapping[str, float | None] | None
    reach: str | None
    n_used: int
    n_total: int
    laws: str | None = None
    gain: str | None = None


def rows_of(forecasts: Sequence[ForecastDict], theme: Theme) -> list[Row]:
    return [
        Row(
            name=str(forecast["run"]),
            href=f"/runs/{forecast['run_id']}" if forecast.get("run_id") else None,
            colour=style.colour,
            marker=style.marker,
            verdict=verdict_of(forecast),
            error=forecast.get("error"),
            A=forecast["parameters"].get("A"),
            B=forecast["parameters"].get("B"),
            Cmid=forecast["parameters"].get("Cmid"),
            at=forecast["at"][0] if forecast.get("at") else None,
            reach=reach_text(forecast["reach"][0], forecast["level"]) if forecast.get("reach") else None,
            n_used=forecast["window"]["n_used"],
            n_total=forecast["window"]["n_total"],
            laws=laws_text(forecast),
            gain=gain_text(forecast),
        )
        for forecast, style in zip(forecasts, styles_of(forecasts, theme), strict=True)
    ]


def points_only(
    name: str, unit: str, points: Sequence[tuple[float, float]], error: str, **extra: object
) -> dict[str, Any]:
    """What stands in a forecast's place when none can be made yet: the points, and why."""
    return {
        "run": name,
        "unit": unit,
        "error": error,
        "parameters": {},
        "at": [],
        "grid": None,
        "window": {"n_used": 0, "n_total": len(points)},
        "points": {
            "compute": [compute for compute, _ in points],
            "pass_rate": [rate for _, rate in points],
            "used": [False] * len(points),
        },
        **extra,
    }


@dataclass(frozen=True)
class CurveData:
    """A curve's measured points, for the table that says the same as the chart."""

    name: str
    unit: str
    hash: str | None
    points: tuple[tuple[float, float, bool], ...]


def curves_of(forecasts: Sequence[ForecastDict]) -> list[CurveData]:
    return [
        CurveData(
            name=str(f["run"]),
            unit=str(f["unit"]),
            hash=f.get("inputs_sha256"),
            points=tuple(
                zip(f["points"]["compute"], f["points"]["pass_rate"], f["points"]["used"], strict=True)
            ),
        )
        for f in forecasts
    ]


def window_of(forecasts: Sequence[ForecastDict], state: CompareState) -> dict[str, object] | None:
    """Where the handles of the window stand; None when there is no point to put them at."""
    compute = [c for f in forecasts for c in f["points"]["compute"] if c > 0]
    if len(compute) < 2:
        return None
    first, last = min(compute), max(compute)
    return {
        "bounds": [first, last],
        "min": state.min_compute or first,
        "max": state.max_compute or last,
    }


def run_item(run: Mapping[str, Any], live: bool = False) -> RunItem:
    """From the service's answer."""
    return RunItem(
        id=run["id"],
        name=run["name"],
        recipe=run["recipe"]["name"],
        benchmark=run["benchmark"],
        unit=run["compute_unit"],
        n_evaluations=run["n_evaluations"],
        live=live,
        version=run["recipe"]["version"],
        recipe_id=run["recipe"]["id"],
        stamp=f"{run['n_evaluations']} {run['last_evaluation_at']}",
    )
