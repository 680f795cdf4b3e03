"""The forecast of one curve: fit, bands, scores, targets and verdict in one object."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fitting.bootstrap import Draws, bootstrap
from fitting.curve import Bools, Curve, Floats
from fitting.errors import FitError
from fitting.laws import LAWS, Law
from fitting.laws.base import LN_BEFORE_RL
from fitting.noise import Noise, binomial_sd, estimate_noise, step_sd
from fitting.options import ForecastOptions
from fitting.point import PointFit, fit_point
from fitting.verdict import NOT_IDENTIFIED, Facts, Verdict, fall_from_best, judge

#: Part of `inputs_sha256`: changes whenever the same points and options give other numbers.
VERSION = "1"
MIN_POINTS = 4
_GRID_POINTS = 80
#: How far the grid goes beyond the last point when nothing farther is asked for.
_GRID_FACTOR = 4.0


@dataclass(frozen=True, eq=False)
class Forecast:
    """A law at chosen compute, with intervals and a verdict.

    `to_dict()` is the public form. `theta` [k] is the point estimate in the law's inner parameters and
    `draws` [m, k] its replicates; `run_sd` is the spread between repeats of a recipe that is already in the
    draws (0 for the forecast of one run).
    """

    name: str
    curve: Curve
    used: Bools
    options: ForecastOptions
    law: Law
    theta: Floats
    draws: Draws
    noise: Noise
    verdict: Verdict
    run_sd: float = 0.0
    inputs_sha256: str = ""
    _cache: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def asymptote(self) -> Floats:
        """Replicates of A, shape [m]."""
        return self.law.outer_values(self.draws.theta)["A"]

    def to_dict(self) -> dict[str, Any]:
        """The forecast as JSON-ready data: finite numbers or None, the same bytes for the same input."""
        if not self._cache:
            self._cache.update(_as_dict(self))
        return json.loads(json.dumps(self._cache))


def forecast(curve: Curve, options: ForecastOptions | None = None) -> Forecast:
    """Forecasts one run. Raises `FitError` when the window holds fewer than 4 different compute values."""
    options = options or ForecastOptions()
    law = LAWS[options.law]
    used = window_of(curve, options)
    ln_c, rate = log_compute(curve.compute[used]), curve.pass_rate[used]
    point = fit_point(law, ln_c, rate)
    noise = estimate_noise(point.residuals, law.n_free, _evaluation_sd(curve, used))
    draws = bootstrap(law, ln_c, rate, point, noise, options.replicates, options.seed)
    facts = facts_of(law, curve.unit, curve.compute[used], rate, point, draws, noise)
    return Forecast(
        name=curve.name,
        curve=curve,
        used=used,
        options=options,
        law=law,
        theta=point.theta,
        draws=draws,
        noise=noise,
        verdict=judge(facts),
        inputs_sha256=inputs_hash([curve], options),
    )


def window_of(curve: Curve, options: ForecastOptions) -> Bools:
    """Which points are fitted, shape [n]."""
    used = np.ones(len(curve), dtype=bool)
    if options.min_compute is not None:
        used &= curve.compute >= options.min_compute
    if options.max_compute is not None:
        used &= curve.compute <= options.max_compute
    distinct = len(np.unique(curve.compute[used]))
    positive = curve.compute[used & (curve.compute > 0)]
    if distinct < MIN_POINTS or len(np.unique(positive)) < MIN_POINTS - 1:
        raise FitError(
            f"{distinct} points at different compute in the window; at least {MIN_POINTS} are needed, "
            "train on or widen the window",
            "points",
        )
    return used


def log_compute(compute: Floats) -> Floats:
    """ln C, shape [n]; zero compute becomes `LN_BEFORE_RL`."""
    positive = compute > 0
    return np.where(positive, np.log(np.where(positive, compute, 1.0)), LN_BEFORE_RL)


def inputs_hash(curves: list[Curve], options: ForecastOptions) -> str:
    """SHA-256 over the exact points, the options and the version of this code."""
    content: list[Any] = [VERSION, options.key()]
    for curve in curves:
        counts = [None if c is None else c.tolist() for c in (curve.n_prompts, curve.n_samples)]
        content.append([curve.unit, curve.compute.tolist(), curve.pass_rate.tolist(), *counts])
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def facts_of(
    law: Law,
    unit: str,
    compute: Floats,
    rate: Floats,
    point: PointFit,
    draws: Draws,
    noise: Noise,
) -> Facts:
    """Measures what the verdict needs."""
    outer = {name: float(v) for name, v in law.outer_values(point.theta).items()}
    a_draws = law.outer_values(draws.theta)["A"]
    low, high = np.quantile(a_draws, [0.05, 0.95])
    last = float(compute[-1])
    fall, fell_after = fall_from_best(rate, compute)
    return Facts(
        unit=unit,
        last=last,
        cmid=outer["Cmid"],
        half_width=float(high - low) / 2,
        at_one=float(np.mean(a_draws > 0.999)),
        fall=fall,
        fell_after=fell_after,
        gain=float(law.value(point.theta, np.log(np.array([last])))[0]) - outer["R0"],
        noise_sd=noise.sd,
        step_sd=step_sd(rate),
        b_at_bound="ln_B" in point.at_bound,
    )


def _evaluation_sd(curve: Curve, used: Bools) -> float | None:
    if curve.n_prompts is None or curve.n_samples is None:
        return None
    return binomial_sd(curve.pass_rate[used], curve.n_prompts[used], curve.n_samples[used])


# -- the public form -------------------------------------------------------------------------------


def significant(value: float | None) -> float | None:
    """Ten significant digits: the last bits of a machine's arithmetic do not show. None if not finite."""
    if value is None or not np.isfinite(value):
        return None
    return float(f"{value:.10g}")


def _as_dict(f: Forecast) -> dict[str, Any]:
    compute = f.curve.compute[f.used]
    positive = compute[compute > 0]
    parameters = _parameters(f)
    now = float(f.law.value(f.theta, np.log(positive[-1:]))[0])
    return {
        "run": f.name,
        "law": f.law.name,
        "unit": f.curve.unit,
        "n_points": int(f.used.sum()),
        "window": {
            "min_compute": float(compute[0]),
            "max_compute": float(compute[-1]),
            "n_used": int(f.used.sum()),
            "n_total": len(f.curve),
        },
        "parameters": parameters,
        "at": _at(f),
        "reach": [_reach(f, target) for target in f.options.reach],
        "verdict": f.verdict.to_dict(),
        "headroom": {key: significant(max((a or 0.0) - now, 0.0)) for key, a in parameters["A"].items()},
        "level": f.options.level,
        "seed": f.options.seed,
        "replicates": f.options.replicates,
        "noise": {
            "sd": significant(f.noise.sd),
            "autocorrelation": significant(f.noise.autocorrelation),
            "between_runs_sd": significant(f.run_sd),
        },
        "grid": _grid(f, positive),
        "points": {
            "compute": f.curve.compute.tolist(),
            "pass_rate": f.curve.pass_rate.tolist(),
            "used": f.used.tolist(),
        },
        "inputs_sha256": f.inputs_sha256,
    }


def ends(level: float) -> tuple[float, float]:
    """The probabilities at the two ends of a central interval."""
    return (1.0 - level) / 2.0, (1.0 + level) / 2.0


def _parameters(f: Forecast) -> dict[str, dict[str, float | None]]:
    values = f.law.outer_values(f.theta)
    draws = f.law.outer_values(f.draws.theta)
    found: dict[str, dict[str, float | None]] = {}
    for name in f.law.outer:
        low, high = np.quantile(draws[name], ends(f.options.level))
        found[name] = {
            "value": significant(float(values[name])),
            "low": significant(low),
            "high": significant(high),
        }
    if f.verdict.state == NOT_IDENTIFIED:
        found["A"]["high"] = 1.0  # nothing seen so far bounds the asymptote from above
    return found


def score_draws(f: Forecast, compute: Floats) -> Floats:
    """Replicates of the score that an evaluation at `compute` [c] would show, shape [m, c], in [0, 1].

    They hold what is unknown of the law and the run's own noise around it.
    """
    law_part = f.law.value(f.draws.theta, log_compute(compute))
    shocks = np.random.default_rng([f.options.seed, 1]).standard_normal(len(law_part))
    return np.clip(law_part + (f.draws.sd * shocks)[:, None], 0.0, 1.0)


def _at(f: Forecast) -> list[dict[str, float | None]]:
    if not f.options.at:
        return []
    compute = np.array(f.options.at)
    values = f.law.value(f.theta, np.log(compute))
    low, high = np.quantile(score_draws(f, compute), ends(f.options.level), axis=0)
    return [
        {"compute": c, "value": significant(v), "low": significant(a), "high": significant(b)}
        for c, v, a, b in zip(f.options.at, values, low, high, strict=True)
    ]


def _reach(f: Forecast, target: float) -> dict[str, float | None]:
    """Compute at which the law reaches the target: None when its asymptote lies below; an end is None when
    that part of the replicates never reaches it."""
    value = float(f.law.compute_for(f.theta, target))
    draws = f.law.compute_for(f.draws.theta, target)
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
    value = f.law.value(f.theta, np.log(compute))
    columns = {"compute": compute, "value": value, **named}
    return {
        **{name: [significant(v) for v in column.tolist()] for name, column in columns.items()},
        "observed_to": float(positive[-1]),
    }
