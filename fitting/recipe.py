"""The forecast of a recipe from several runs of it (seeds)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fitting.curve import Curve, Floats
from fitting.errors import FitError
from fitting.forecast import Forecast, forecast, inputs_hash
from fitting.mixture import Mixture, Pooled
from fitting.options import ForecastOptions
from fitting.verdict import IDENTIFIED, LOWER_BOUND, NOT_IDENTIFIED, Verdict
from fitting.windows import log_compute

#: How many runs the assumed spread between repeats (`ForecastOptions.seed_sd`) counts as.
_PRIOR_RUNS = 2.0


def forecast_recipe(
    curves: Sequence[Curve], options: ForecastOptions | None = None, name: str = "recipe"
) -> Forecast:
    """Forecasts a recipe: each run is fitted by itself, then runs are averaged.

    The replicates resample runs and add what repeats of the recipe differ by: the spread of A (of the score at
    the last common compute, for laws without A) between the runs, shrunk towards `options.seed_sd`; with one
    run, that assumption alone. `name` is the recipe's.

    Raises `FitError` for no runs, different units, or a run with too few points (which is named).
    """
    options = options or ForecastOptions()
    if not curves:
        raise FitError("the recipe has no runs; log or import one first", "runs")
    units = sorted({curve.unit for curve in curves})
    if len(units) > 1:
        raise FitError(f"the runs have compute in {' and '.join(units)}; convert them to one unit", "unit")
    runs = [_forecast_run(curve, replace(options, seed=options.seed + i)) for i, curve in enumerate(curves)]
    run_sd = between_runs_sd(_levels(runs), options.seed_sd)
    merged, used = _merge(runs)
    noises = [run.noise for run in runs]
    return replace(
        runs[0],
        name=name,
        curve=merged,
        used=used,
        options=options,
        ensemble=_pool(runs, run_sd, options),
        noise={
            "sd": float(np.sqrt(np.mean([noise["sd"] ** 2 for noise in noises]))),
            "autocorrelation": float(np.mean([noise["autocorrelation"] for noise in noises])),
        },
        verdict=_verdict(runs),
        run_sd=run_sd,
        measured_runs=len(runs),
        cuts=runs[0].cuts if len(runs) == 1 else (),
        details=runs[0].details if len(runs) == 1 else None,
        inputs_sha256=inputs_hash(list(curves), options),
        _cache={},
    )


def _forecast_run(curve: Curve, options: ForecastOptions) -> Forecast:
    try:
        return forecast(curve, options)
    except FitError as error:
        raise FitError(f"run '{curve.name}': {error}", error.field) from error


def _levels(runs: list[Forecast]) -> Floats:
    """What runs of a recipe are compared by, shape [r]."""
    outer = [run.ensemble.outer() for run in runs]
    if all("A" in values for values in outer):
        return np.array([values["A"] for values in outer])
    common = min(float(run.curve.compute[run.used][-1]) for run in runs)
    return np.array([float(run.ensemble.point(np.log([common]))[0]) for run in runs])


def between_runs_sd(levels: Floats, assumed: float) -> float:
    """Standard deviation between runs [r], shrunk towards `assumed` with the weight of two runs."""
    deviations = levels - levels.mean()
    dof = _PRIOR_RUNS + len(levels) - 1
    return float(np.sqrt((_PRIOR_RUNS * assumed**2 + float(deviations @ deviations)) / dof))


def _pool(runs: list[Forecast], run_sd: float, options: ForecastOptions) -> Pooled:
    rng = np.random.default_rng([options.seed, 2])
    m, r = options.replicates, len(runs)
    chosen = rng.integers(0, r, size=(m, r))
    shift = rng.standard_normal(m) * run_sd / np.sqrt(r)
    mixtures = tuple(run.ensemble for run in runs if isinstance(run.ensemble, Mixture))
    seen = [log_compute(run.curve.compute[run.used & (run.curve.compute > 0)]) for run in runs]
    ln_first, ln_last = min(float(s[0]) for s in seen), max(float(s[-1]) for s in seen)
    return Pooled(mixtures, chosen, shift, ln_first, ln_last)


def _merge(runs: list[Forecast]) -> tuple[Curve, np.ndarray]:
    """All runs' points as one curve, for showing, and which of them were fitted."""
    compute = np.concatenate([run.curve.compute for run in runs])
    order = np.argsort(compute, kind="stable")
    rate = np.concatenate([run.curve.pass_rate for run in runs])
    used = np.concatenate([run.used for run in runs])[order]
    first = runs[0].curve

    def counts(name: str) -> Any:
        parts = [getattr(run.curve, name) for run in runs]
        return None if any(part is None for part in parts) else np.concatenate(parts)

    extra = {name: counts(name) for name in ("n_prompts", "n_samples", "score_sd")}
    return Curve(compute, rate, first.unit, first.name, **extra), used


def _verdict(runs: list[Forecast]) -> Verdict:
    """A recipe is as well known as the worst of its runs."""
    if len(runs) == 1:
        return runs[0].verdict
    order = [IDENTIFIED, LOWER_BOUND, NOT_IDENTIFIED]
    worst = max(runs, key=lambda run: order.index(run.verdict.state))
    reasons = tuple(f"run {worst.curve.name}: {reason}" for reason in worst.verdict.reasons)
    return Verdict(worst.verdict.state, (f"{len(runs)} runs pooled", *reasons), worst.verdict.remedy)
