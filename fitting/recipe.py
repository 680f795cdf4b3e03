"""The forecast of a recipe from several runs of it (seeds)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fitting.bootstrap import Draws
from fitting.curve import Curve, Floats, Ints
from fitting.errors import FitError
from fitting.forecast import Forecast, forecast, inputs_hash, window_of
from fitting.noise import Noise
from fitting.options import ForecastOptions
from fitting.verdict import IDENTIFIED, LOWER_BOUND, NOT_IDENTIFIED, Verdict

#: Spread of A between repeats of one recipe that is assumed before several are seen: the paper's margin of
#: ±0.015 over three runs (arXiv 2510.13786, A.7) is about two standard deviations.
SEED_SD = 0.0075
_PRIOR_RUNS = 2.0


def forecast_recipe(
    curves: Sequence[Curve], options: ForecastOptions | None = None, name: str = "recipe"
) -> Forecast:
    """Forecasts a recipe: each run is fitted by itself, then runs are averaged.

    The replicates resample runs and add what repeats of the recipe differ by: the spread of A between the
    runs, shrunk towards `SEED_SD` (with one run, that assumption alone). `name` is the recipe's.

    Raises `FitError` for no runs, different units, or a run with too few points (which is named).
    """
    options = options or ForecastOptions()
    if not curves:
        raise FitError("the recipe has no runs; log or import one first", "runs")
    units = sorted({curve.unit for curve in curves})
    if len(units) > 1:
        raise FitError(f"the runs have compute in {' and '.join(units)}; convert them to one unit", "unit")
    runs = [_forecast_run(curve, replace(options, seed=options.seed + i)) for i, curve in enumerate(curves)]
    run_sd = between_runs_sd(np.array([run.law.outer_values(run.theta)["A"] for run in runs]))
    merged = _merge(curves)
    return replace(
        runs[0],
        name=name,
        curve=merged,
        used=window_of(merged, options),
        options=options,
        theta=np.mean([run.theta for run in runs], axis=0),
        draws=_draws(runs, run_sd, options),
        noise=_mean_noise(runs),
        verdict=_verdict(runs),
        run_sd=run_sd,
        inputs_sha256=inputs_hash(list(curves), options),
        _cache={},
    )


def _forecast_run(curve: Curve, options: ForecastOptions) -> Forecast:
    try:
        return forecast(curve, options)
    except FitError as error:
        raise FitError(f"run '{curve.name}': {error}", error.field) from error


def _mean_noise(runs: list[Forecast]) -> Noise:
    """The noise of a run of the recipe: root mean square of the sizes, mean autocorrelation."""
    sd = float(np.sqrt(np.mean([run.noise.sd**2 for run in runs])))
    autocorrelation = float(np.mean([run.noise.autocorrelation for run in runs]))
    return Noise(sd, autocorrelation, sum(run.noise.dof for run in runs))


def between_runs_sd(asymptotes: Floats) -> float:
    """Standard deviation of A between runs [r], shrunk towards `SEED_SD` with the weight of two runs."""
    deviations = asymptotes - asymptotes.mean()
    dof = _PRIOR_RUNS + len(asymptotes) - 1
    return float(np.sqrt((_PRIOR_RUNS * SEED_SD**2 + float(deviations @ deviations)) / dof))


def _draws(runs: list[Forecast], run_sd: float, options: ForecastOptions) -> Draws:
    rng = np.random.default_rng([options.seed, 2])
    m, r = options.replicates, len(runs)
    chosen = rng.integers(0, r, size=(m, r))
    every = np.stack([run.draws.theta for run in runs])  # [r, m, k]
    theta = every[chosen, np.arange(m)[:, None]].mean(axis=1)
    # A = R0 + g (1 - R0): a shift of A is a shift of g.
    shift = rng.standard_normal(m) * run_sd / np.sqrt(r)
    theta[:, 1] = np.clip(theta[:, 1] + shift / (1.0 - theta[:, 0]), 1e-6, 1.0)
    return Draws(theta, np.mean([run.draws.sd for run in runs], axis=0))


def _merge(curves: Sequence[Curve]) -> Curve:
    def counts(name: str) -> Ints | None:
        parts = [getattr(curve, name) for curve in curves]
        return None if any(part is None for part in parts) else np.concatenate(parts)

    return Curve(
        np.concatenate([curve.compute for curve in curves]),
        np.concatenate([curve.pass_rate for curve in curves]),
        curves[0].unit,
        curves[0].name,
        n_prompts=counts("n_prompts"),
        n_samples=counts("n_samples"),
    )


def _verdict(runs: list[Forecast]) -> Verdict:
    """A recipe is as well known as the worst of its runs."""
    if len(runs) == 1:
        return runs[0].verdict
    order = [IDENTIFIED, LOWER_BOUND, NOT_IDENTIFIED]
    worst = max(runs, key=lambda run: order.index(run.verdict.state))
    reasons = tuple(f"run {worst.curve.name}: {reason}" for reason in worst.verdict.reasons)
    return Verdict(worst.verdict.state, (f"{len(runs)} runs pooled", *reasons), worst.verdict.remedy)
