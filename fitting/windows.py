"""Which points are fitted, and how the fit moves when the window's start does."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fitting.batch import Problem, fit_batch
from fitting.curve import Bools, Curve, Floats
from fitting.errors import FitError
from fitting.laws import LAWS
from fitting.laws.base import LN_BEFORE_RL
from fitting.options import AUTO, ForecastOptions
from fitting.parts import series_of
from fitting.posterior import Series

MIN_POINTS = 4
#: Cuts that are tried drop up to this share of the points, and leave at least so many.
_MAX_DROPPED, _MIN_LEFT, _CUTS = 0.5, 8, 9
#: Two windows agree when A and ln B differ by less than these, or by less than what noise explains.
STABLE, STABLE_LN_B = 0.01, 0.1
#: Standard error of ln B up to which a window tells B.
TELLS_LN_B = 0.25
_STARTS = 3


@dataclass(frozen=True)
class Cut:
    """The sigmoid fitted from one start of the window: its parameters, standard errors of A and ln B, and points."""

    min_compute: float
    n_points: int
    a: float
    a_sd: float
    b: float
    ln_b_sd: float
    cmid: float
    residual_sd: float

    def with_noise(self, sd: float) -> Cut:
        """The same with standard errors for noise of this size."""
        scale = sd / self.residual_sd if self.residual_sd > 0 else 1.0
        return replace(self, a_sd=self.a_sd * scale, ln_b_sd=self.ln_b_sd * scale, residual_sd=sd)

    def to_dict(self) -> dict[str, float | int]:
        values = {"A": self.a, "B": self.b, "Cmid": self.cmid}
        rounded = {name: float(f"{value:.10g}") for name, value in values.items()}
        return {"min_compute": self.min_compute, "n_points": self.n_points, **rounded}


def log_compute(compute: Floats) -> Floats:
    """ln C, shape [n]; zero compute becomes `LN_BEFORE_RL`."""
    positive = compute > 0
    return np.where(positive, np.log(np.where(positive, compute, 1.0)), LN_BEFORE_RL)


def window_of(curve: Curve, options: ForecastOptions) -> Bools:
    """Which points are fitted, shape [n]. Raises `FitError` when too few are left."""
    used = np.ones(len(curve), dtype=bool)
    if options.max_compute is not None:
        used &= curve.compute <= options.max_compute
    if options.min_compute == AUTO:
        _check_enough(curve, used)
        start = stable_start(cuts_of(curve, used))
        used &= (curve.compute >= start) | (curve.compute == 0)
    elif isinstance(options.min_compute, float | int):
        used &= curve.compute >= options.min_compute
    _check_enough(curve, used)
    return used


def _check_enough(curve: Curve, used: Bools) -> None:
    distinct = len(np.unique(curve.compute[used]))
    positive = curve.compute[used & (curve.compute > 0)]
    if distinct < MIN_POINTS or len(np.unique(positive)) < MIN_POINTS - 1:
        raise FitError(
            f"{distinct} points at different compute in the window; at least {MIN_POINTS} are needed, "
            "train on or widen the window",
            "points",
        )


def cuts_of(curve: Curve, used: Bools) -> list[Cut]:
    """The sigmoid fitted from later and later starts of the window, the whole window first.

    Only points in the window are looked at. An evaluation at zero compute is kept in every cut: it is R0.
    """
    positive = np.flatnonzero(used & (curve.compute > 0))
    droppable = min(int(_MAX_DROPPED * len(positive)), len(positive) - _MIN_LEFT)
    drops = np.unique(np.linspace(0, max(droppable, 0), _CUTS).astype(int))
    starts = list(dict.fromkeys(float(curve.compute[positive[d]]) for d in drops))
    cuts = [_fit_from(curve, used, start) for start in starts]
    # The noise is that of the window which the law fits best: a window that it does not fit must not excuse itself
    # with large residuals.
    least = min(cut.residual_sd for cut in cuts)
    return [cut.with_noise(least) for cut in cuts]


def _fit_from(curve: Curve, used: Bools, start: float) -> Cut:
    keep = used & ((curve.compute >= start) | (curve.compute == 0))
    law = LAWS["sigmoid"]
    plain = Series(log_compute(curve.compute[keep]), curve.pass_rate[keep], np.ones(int(keep.sum())))
    series, ln_unit = series_of(law, plain)
    begin = law.starts(series.ln_c, series.rate, _STARTS)
    low, high = (np.broadcast_to(bound, begin.shape) for bound in law.bounds(series.ln_c))
    problem = Problem(law, series.ln_c, np.repeat(series.rate[None], len(begin), 0), low, high)
    theta, sse = fit_batch(problem, begin)
    best = theta[sse.argmin()]
    outer = {name: float(v) for name, v in law.outer_values(best, ln_unit).items()}
    a_sd, ln_b_sd = _errors(best, law.value_and_jacobian(best, series.ln_c)[1], float(sse.min()))
    residual_sd = float(np.sqrt(sse.min() / max(len(series) - 4, 1)))
    return Cut(start, len(series), outer["A"], a_sd, outer["B"], ln_b_sd, outer["Cmid"], residual_sd)


def _errors(theta: Floats, jacobian: Floats, sse: float) -> tuple[float, float]:
    """Standard errors of A = R0 + g (1 - R0) and of ln B by linearisation, residuals taken as independent."""
    free = jacobian[:, :4]
    dof = max(len(free) - 4, 1)
    covariance = np.linalg.pinv(free.T @ free) * sse / dof
    slope = np.array([1.0 - theta[1], 1.0 - theta[0], 0.0, 0.0])
    variances = slope @ covariance @ slope, covariance[3, 3]
    return float(np.sqrt(max(variances[0], 0.0))), float(np.sqrt(max(variances[1], 0.0)))


def stable_start(cuts: list[Cut]) -> float:
    """The earliest start from which A and B no longer move: every later start agrees with it within `STABLE`, or
    within what the noise of both explains (three standard errors of the difference; Hausman 1978, Econometrica 46).
    Starts so late that they hardly tell B say nothing of it."""
    for i, cut in enumerate(cuts):
        if all(_agree(cut, later) for later in cuts[i + 1 :]):
            return 0.0 if i == 0 else cut.min_compute
    return cuts[-1].min_compute


def _agree(whole: Cut, part: Cut) -> bool:
    a_moves, b_moves = abs(part.a - whole.a), abs(np.log(part.b / whole.b))
    a_noise, b_noise = _difference_sd(whole.a_sd, part.a_sd), _difference_sd(whole.ln_b_sd, part.ln_b_sd)
    same_b = part.ln_b_sd > TELLS_LN_B or b_moves <= max(STABLE_LN_B, 3.0 * b_noise)
    return bool(a_moves <= max(STABLE, 3.0 * a_noise) and same_b)


def _difference_sd(whole_sd: float, part_sd: float) -> float:
    """Of estimates from a window and from a part of it the difference has the difference of the variances."""
    return float(np.sqrt(max(part_sd**2 - whole_sd**2, 0.0)))


def unsettled(cuts: tuple[Cut, ...]) -> tuple[float, float]:
    """The least and the largest A among the cuts that noise alone does not explain: those farther from the whole
    window's than four standard errors of the difference (of independent residuals; correlated ones err more)."""
    if not cuts:
        return 0.0, 0.0
    whole = cuts[0]
    moved = [c.a for c in cuts[1:] if abs(c.a - whole.a) > 4.0 * _difference_sd(whole.a_sd, c.a_sd)]
    return min([whole.a, *moved]), max([whole.a, *moved])
