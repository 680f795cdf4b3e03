"""The reported fit: lmfit's bounded least squares from several deterministic starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fitting.batch import Problem, fit_batch
from fitting.laws.base import Floats, Law
from fitting.posterior import Series

_STARTS = 4
#: Loss functions of the point fit, as scipy's `least_squares` names them. All but "linear" are robust: a point
#: far from the curve counts for less.
LOSSES = ("linear", "soft_l1", "huber", "cauchy")
#: Where a robust loss begins to bend, in noise standard deviations.
_ROBUST_FROM = 2.0


@dataclass(frozen=True)
class PointFit:
    """The best fit of one law to one series.

    `theta`: inner parameters [k]; `residuals` [n]; `at_bound`: inner parameters that lie on a bound;
    `influence` [n]: how much each point counted, 1 unless a robust loss weighed it down.
    """

    theta: Floats
    residuals: Floats
    at_bound: tuple[str, ...]
    influence: Floats


def fit_point(law: Law, series: Series, loss: str = "linear") -> PointFit:
    """Fits `law` to the series by lmfit (method `least_squares`, trust region), residuals weighted by 1 / spread."""
    low, high = law.bounds(series.ln_c)
    free = low < high
    starts = law.starts(series.ln_c, series.rate, _STARTS)
    inside = [np.clip(s, low + 1e-9 * free, high - 1e-9 * free) for s in starts]
    start = _multi_start(law, series, np.array(inside), (low, high))
    theta = _lmfit(law, series, start, (low, high), "linear", 1.0)
    influence = np.ones(len(series))
    if loss != "linear":
        theta, influence = _robust(law, series, theta, (low, high), loss)
    near = free & ((theta - low < 1e-4 * (high - low)) | (high - theta < 1e-4 * (high - low)))
    bound = tuple(name for name, is_near in zip(law.inner, near, strict=True) if is_near)
    return PointFit(theta, series.rate - law.value(theta, series.ln_c), bound, influence)


def _robust(
    law: Law, series: Series, theta: Floats, box: tuple[Floats, Floats], loss: str
) -> tuple[Floats, Floats]:
    """The robust fit that starts from the least-squares one, and each point's influence."""

    def z_of(at: Floats) -> Floats:
        return (series.rate - law.value(at, series.ln_c)) / series.spread

    # Where the loss begins to bend: `_ROBUST_FROM` sd, by the median of |residuals|.
    scale = max(_ROBUST_FROM * 1.4826 * float(np.median(np.abs(z_of(theta)))), 1e-6)
    starts = [theta, *_without_far(law, series, z_of(theta) / scale, theta, box)]
    fits = [_lmfit(law, series, start, box, loss, scale) for start in starts]
    best = min(fits, key=lambda at: _cost(loss, z_of(at) / scale))
    return best, _influence(loss, z_of(best) / scale)


def _influence(loss: str, z: Floats) -> Floats:
    """Weight of each point in the equivalent weighted least squares: the loss's derivative by z^2, shape [n]."""
    if loss == "huber":
        return np.asarray(1.0 / np.maximum(np.abs(z), 1.0))
    return np.asarray((1.0 + z**2) ** (-0.5 if loss == "soft_l1" else -1.0))


def _multi_start(law: Law, series: Series, starts: Floats, box: tuple[Floats, Floats]) -> Floats:
    """The best of the batched fits from all starts: lmfit refines it."""
    low, high = (np.broadcast_to(bound, starts.shape) for bound in box)
    rates = np.broadcast_to(series.rate, (len(starts), len(series)))
    theta, sse = fit_batch(Problem(law, series.ln_c, rates, low, high, 1.0 / series.spread), starts)
    free = box[0] < box[1]
    return np.clip(theta[int(sse.argmin())], box[0] + 1e-9 * free, box[1] - 1e-9 * free)


def _without_far(
    law: Law, series: Series, z: Floats, theta: Floats, box: tuple[Floats, Floats]
) -> list[Floats]:
    """A second start for a robust fit: least squares without the points that lie far from the first one."""
    near = np.abs(z) <= 1.0
    if near.all() or near.sum() <= law.n_free:
        return []
    kept = Series(series.ln_c[near], series.rate[near], series.spread[near])
    return [_multi_start(law, kept, theta[None], box)]


def _lmfit(
    law: Law, series: Series, start: Floats, box: tuple[Floats, Floats], loss: str, scale: float
) -> Floats:
    import lmfit

    low, high = box
    parameters = lmfit.Parameters()
    for name, value, lower, upper in zip(law.inner, start, low, high, strict=True):
        if lower < upper:
            parameters.add(name, value=float(value), min=float(lower), max=float(upper))
        else:
            parameters.add(name, value=float(lower), vary=False)
    free = low < high

    def theta_of(values: Any) -> Floats:
        return np.array([values[name].value for name in law.inner])

    def residual(values: Any) -> Floats:
        return (series.rate - law.value(theta_of(values), series.ln_c)) / series.spread

    def jacobian(values: Any) -> Floats:
        _, slopes = law.value_and_jacobian(theta_of(values), series.ln_c)
        return -slopes[:, free] / series.spread[:, None]

    limits = {"ftol": 1e-13, "xtol": 1e-13, "gtol": 1e-13, "max_nfev": 400}
    with np.errstate(all="ignore"):  # lmfit's covariance of a flat curve divides by zero; it is not used
        found = lmfit.minimize(
            residual,
            parameters,
            method="least_squares",
            jac=jacobian,
            x_scale="jac",
            loss=loss,
            f_scale=scale,
            **limits,
        )
    return theta_of(found.params)


def _cost(loss: str, z: Floats) -> float:
    """The sum that the loss minimises, up to a factor, for residuals in units of its scale."""
    square = z**2
    if loss == "soft_l1":
        return float((2.0 * (np.sqrt(1.0 + square) - 1.0)).sum())
    if loss == "cauchy":
        return float(np.log1p(square).sum())
    if loss == "huber":
        return float(np.where(square <= 1.0, square, 2.0 * np.abs(z) - 1.0).sum())
    return float(square.sum())
