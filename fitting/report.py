"""The public form of a forecast: what command line, service, gate and dashboard all show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fitting.curve import Floats
from fitting.mixture import Mixture, Pooled
from fitting.options import AUTO
from fitting.value import value_of
from fitting.verdict import IDENTIFIED

if TYPE_CHECKING:
    from fitting.forecast import Forecast

_GRID_POINTS = 80
#: How far the grid goes beyond the last point when nothing farther is asked for.
_GRID_FACTOR = 4.0


def significant(value: float | None) -> float | None:
    """Ten significant digits: the last bits of a machine's arithmetic do not show. None if not finite."""
    if value is None or not np.isfinite(value):
        return None
    return float(f"{value:.10g}")


def ends(level: float) -> tuple[float, float]:
    """The probabilities at the two ends of a central interval."""
    return (1.0 - level) / 2.0, (1.0 + level) / 2.0


def score_draws(f: Forecast, compute: Floats) -> Floats:
    """Replicates of the score that an evaluation at `compute` [c] would show, shape [m, c], in [0, 1].

    They hold what is unknown of the curve and the run's own noise around it.
    """
    curves = f.ensemble.curves(np.log(compute))
    shocks = np.random.default_rng([f.options.seed, 1]).standard_normal(len(curves))
    return np.clip(curves + (f.ensemble.noise_sd() * shocks)[:, None], 0.0, 1.0)


def as_dict(f: Forecast) -> dict[str, Any]:
    compute = f.curve.compute[f.used]
    positive = compute[compute > 0]
    parameters = _parameters(f)
    now = float(f.ensemble.point(np.log(positive[-1:]))[0])
    a = parameters.get("A")
    return {
        "run": f.name,
        "law": f.options.law,
        "laws": _laws(f),
        "unit": f.curve.unit,
        "n_points": int(f.used.sum()),
        "window": {
            "min_compute": float(compute[0]),
            "max_compute": float(compute[-1]),
            "n_used": int(f.used.sum()),
            "n_total": len(f.curve),
        },
        "sensitivity": [cut.to_dict() for cut in f.cuts],
        "parameters": parameters,
        "at": _at(f),
        "reach": [_reach(f, target) for target in f.options.reach],
        "verdict": f.verdict.to_dict(),
        "headroom": None if a is None else {k: significant(max((v or 0.0) - now, 0.0)) for k, v in a.items()},
        "value": value_of(f.ensemble, f.options, positive),
        "level": f.options.level,
        "seed": f.options.seed,
        "replicates": f.options.replicates,
        "noise": {
            "sd": significant(f.noise["sd"]),
            "autocorrelation": significant(f.noise["autocorrelation"]),
            "evaluation_sd": significant(f.evaluation_sd),
            "between_runs_sd": significant(f.run_sd),
        },
        "uncertainty": _uncertainty(f),
        "fit": f.details,
        "notes": list(f.notes),
        "grid": _grid(f, positive),
        "points": {
            "compute": f.curve.compute.tolist(),
            "pass_rate": f.curve.pass_rate.tolist(),
            "used": f.used.tolist(),
        },
        "inputs_sha256": f.inputs_sha256,
    }


def _laws(f: Forecast) -> list[dict[str, Any]]:
    """The laws of the forecast with their weights; of a recipe, the mean over its runs."""
    runs = f.ensemble.runs if isinstance(f.ensemble, Pooled) else (f.ensemble,)
    total: dict[str, float] = {}
    titles: dict[str, tuple[str, str]] = {}
    for run in runs:
        assert isinstance(run, Mixture)
        for part, weight in zip(run.parts, run.weights, strict=True):
            total[part.law.name] = total.get(part.law.name, 0.0) + weight / sum(run.weights) / len(runs)
            titles[part.law.name] = (part.law.title, part.law.equation)
    ordered = sorted(total, key=lambda name: -total[name])
    return [
        {
            "law": name,
            "title": titles[name][0],
            "equation": titles[name][1],
            "weight": significant(total[name]),
        }
        for name in ordered
    ]


def _uncertainty(f: Forecast) -> list[str]:
    """Which parts of the uncertainty are in the intervals, in words."""
    parts = ["the law's parameters"]
    if f.options.bands == "bootstrap":
        parts.append("the run's noise, AR(1), its autocorrelation as estimated (bias-corrected)")
    else:
        parts.append("the run's noise: its size, autocorrelation and white share, all as unknown")
    if f.evaluation_sd is not None:
        parts.append(
            f"evaluation noise from the counts of prompts and samples: {f.evaluation_sd:.4f} a score"
        )
    if f.options.law == AUTO:
        parts.append(
            "which law holds: laws weighted by how they forecast this run, sigmoids of several shapes"
        )
    if f.run_sd > 0:
        source = (
            f"measured from {f.measured_runs} runs and the assumed spread"
            if f.measured_runs > 1
            else "assumed"
        )
        parts.append(f"repeats of the recipe: sd {f.run_sd:.4f}, {source}")
    return parts


def _parameters(f: Forecast) -> dict[str, dict[str, float | None]]:
    values, draws = f.ensemble.outer(), f.ensemble.outer_draws()
    found: dict[str, dict[str, float | None]] = {}
    for name, value in values.items():
        low, high = np.quantile(draws[name], ends(f.options.level))
        found[name] = {"value": significant(value), "low": significant(low), "high": significant(high)}
    if "A" in found and f.verdict.state != IDENTIFIED:
        found["A"]["high"] = 1.0  # only a lower bound is known, if that: nothing bounds A from above
    return found


def _at(f: Forecast) -> list[dict[str, float | None]]:
    if not f.options.at:
        return []
    compute = np.array(f.options.at)
    values = f.ensemble.point(np.log(compute))
    low, high = np.quantile(score_draws(f, compute), ends(f.options.level), axis=0)
    return [
        {"compute": c, "value": significant(v), "low": significant(a), "high": significant(b)}
        for c, v, a, b in zip(f.options.at, values, low, high, strict=True)
    ]


def _reach(f: Forecast, target: float) -> dict[str, float | None]:
    """Compute at which the curve reaches the target: None when it never does; an end is None when that part of
    the replicates never reaches it."""
    value = f.ensemble.compute_for(target)
    draws = f.ensemble.compute_for_draws(target)
    low, high = np.quantile(draws, ends(f.options.level), method="inverted_cdf")
    in_units = (float(np.exp(min(v, 700.0))) if v < np.inf else None for v in (value, low, high))
    found, at_low, at_high = (significant(v) for v in in_units)
    return {"pass_rate": target, "compute": found, "low": at_low, "high": at_high}


def _grid(f: Forecast, positive: Floats) -> dict[str, Any]:
    end = max([positive[-1] * _GRID_FACTOR, f.curve.compute[-1], *(c * 1.05 for c in f.options.at)])
    compute = np.geomspace(positive[0], end, _GRID_POINTS)
    low, high = ends(f.options.level)
    edges = np.quantile(score_draws(f, compute), [low, 0.25, 0.75, high], axis=0)
    named = dict(zip(("low", "low50", "high50", "high"), edges, strict=True))
    columns = {"compute": compute, "value": f.ensemble.point(np.log(compute)), **named}
    return {
        **{name: [significant(v) for v in column.tolist()] for name, column in columns.items()},
        "observed_to": float(positive[-1]),
    }
