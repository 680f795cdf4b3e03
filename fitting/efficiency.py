"""B at a common A: which of two recipes is more efficient when their ceilings agree (arXiv 2510.13786, A.7)."""

from __future__ import annotations

from typing import Any

import numpy as np

from fitting.batch import Problem, fit_batch
from fitting.curve import Curve, Floats
from fitting.forecast import Forecast
from fitting.laws import LAWS
from fitting.mixture import Mixture, Pooled
from fitting.parts import Part
from fitting.report import ends, significant

_REFITS = 300


def efficiency_of(
    candidate: Forecast, baseline: Forecast, margin: float, level: float
) -> dict[str, Any] | None:
    """B of both with A fixed to their mean; None when A differs by more than `margin` or is not the sigmoid's."""
    sides = (candidate, baseline)
    values = [side.ensemble.outer() for side in sides]
    if any("B" not in v or "A" not in v for v in values) or any(_sigmoids(s) is None for s in sides):
        return None
    a_mean = float(np.mean([v["A"] for v in values]))
    if abs(values[0]["A"] - values[1]["A"]) > margin:
        return {"common_a": None, "reason": f"A differs by more than the margin {margin:g}: rank by A"}
    found = [_b_at(side, a_mean) for side in sides]
    (b_c, draws_c), (b_b, draws_b) = found
    ratio = np.log(draws_c) - np.log(np.resize(draws_b[::-1], len(draws_c)))
    low, high = np.exp(np.quantile(ratio, ends(level)))
    return {
        "common_a": significant(a_mean),
        "candidate_b": significant(b_c),
        "baseline_b": significant(b_b),
        "ratio": {"value": significant(b_c / b_b), "low": significant(low), "high": significant(high)},
        "p_higher": float(np.mean(ratio > 0.0)),
        "reason": None,
    }


def _sigmoids(forecast: Forecast) -> list[tuple[Part, Mixture]] | None:
    """The sigmoid of each run."""
    runs = forecast.ensemble.runs if isinstance(forecast.ensemble, Pooled) else (forecast.ensemble,)
    found = []
    for run in runs:
        assert isinstance(run, Mixture)
        part = next((p for p in run.parts if p.law.name == "sigmoid"), None)
        if part is None:
            return None
        found.append((part, run))
    return found


def _b_at(forecast: Forecast, a: float) -> tuple[float, Floats]:
    """B with A fixed to `a`: of the point fits (geometric mean over runs) and of the replicates [m].

    Each replicate's curve at the run's own compute is refitted with A fixed, so that its uncertainty carries
    over to B.
    """
    runs = _sigmoids(forecast) or []
    points, draws = [], []
    for part, _ in runs:
        ln_c = _seen(forecast.curve, forecast.used, part)
        theta = np.concatenate([part.theta[None], part.draws.theta[:_REFITS]])
        rates = np.clip(part.law.value(theta, ln_c), 0.0, 1.0)
        b = _refit(part, ln_c, rates, a)
        points.append(float(b[0]))
        draws.append(b[1:])
    return float(np.exp(np.mean(np.log(points)))), np.asarray(np.exp(np.mean(np.log(draws), axis=0)))


def _seen(curve: Curve, used: np.ndarray, part: Part) -> Floats:
    """A grid over what was seen, in the part's own unit of compute, shape [24]."""
    compute = curve.compute[used]
    positive = compute[compute > 0]
    return np.linspace(np.log(positive[0]), np.log(positive[-1]), 24) - part.ln_unit


def _refit(part: Part, ln_c: Floats, rates: Floats, a: float) -> Floats:
    """B of sigmoids with asymptote `a` fitted to curves `rates` [m, n], shape [m]."""
    law = _FixedA(a)
    low, high = LAWS["sigmoid"].bounds(ln_c)
    keep = [0, 2, 3]
    shape = (len(rates), 3)
    box = (
        np.broadcast_to(low[keep], shape),
        np.broadcast_to(np.minimum(high, [a - 1e-3, 1, np.inf, np.inf, 1])[keep], shape),
    )
    outer = LAWS["sigmoid"].outer_values(part.theta)
    start = np.array(
        [min(float(outer["R0"]), a - 2e-3), np.log(float(outer["Cmid"])), np.log(float(outer["B"]))]
    )
    theta, _ = fit_batch(Problem(law, ln_c, rates, *box), np.broadcast_to(start, shape).copy())  # type: ignore[arg-type]
    return np.exp(theta[:, 2])


class _FixedA:
    """The sigmoid with A given: parameters R0, ln Cmid, ln B."""

    def __init__(self, a: float) -> None:
        self.a = a

    def _full(self, theta: Floats) -> Floats:
        r0 = theta[..., 0]
        gain = (self.a - r0) / (1.0 - r0)
        return np.stack([r0, gain, theta[..., 1], theta[..., 2], np.zeros_like(r0)], axis=-1)

    def value(self, theta: Floats, ln_c: Floats) -> Floats:
        return LAWS["sigmoid"].value(self._full(theta), ln_c)

    def value_and_jacobian(self, theta: Floats, ln_c: Floats) -> tuple[Floats, Floats]:
        full = self._full(theta)
        value, slopes = LAWS["sigmoid"].value_and_jacobian(full, ln_c)
        # dR/dR0 at fixed A: 1 - share, where share = (R - R0) / (A - R0).
        share = (value - full[..., 0, None]) / (self.a - full[..., 0, None])
        return value, np.stack([1.0 - share, slopes[..., 2], slopes[..., 3]], axis=-1)
