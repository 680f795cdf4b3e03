"""The reported fit: lmfit's bounded least squares from several deterministic starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fitting.laws.base import Floats, Law

_STARTS = 4


@dataclass(frozen=True)
class PointFit:
    """The best fit of one curve.

    `theta`: inner parameters [k]; `residuals` [n]; `at_bound`: inner parameters that lie on a bound.
    """

    theta: Floats
    residuals: Floats
    at_bound: tuple[str, ...]


def fit_point(law: Law, ln_c: Floats, rate: Floats) -> PointFit:
    """Fits `law` to points ln C [n], pass rate [n] by lmfit (method `least_squares`, trust region)."""
    low, high = law.bounds(ln_c)
    free = low < high
    inside = [np.clip(s, low + 1e-9 * free, high - 1e-9 * free) for s in law.starts(ln_c, rate, _STARTS)]
    fits = [_lmfit(law, ln_c, rate, start, low, high) for start in inside]
    theta = min(fits, key=lambda fit: fit[1])[0]
    near = free & ((theta - low < 1e-4 * (high - low)) | (high - theta < 1e-4 * (high - low)))
    bound = tuple(name for name, is_near in zip(law.inner, near, strict=True) if is_near)
    return PointFit(theta, rate - law.value(theta, ln_c), bound)


def _lmfit(
    law: Law, ln_c: Floats, rate: Floats, start: Floats, low: Floats, high: Floats
) -> tuple[Floats, float]:
    import lmfit

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
        return rate - law.value(theta_of(values), ln_c)

    def jacobian(values: Any) -> Floats:
        return -law.value_and_jacobian(theta_of(values), ln_c)[1][:, free]

    limits = {"ftol": 1e-13, "xtol": 1e-13, "gtol": 1e-13, "max_nfev": 400}
    with np.errstate(all="ignore"):  # lmfit's covariance of a flat curve divides by zero; it is not used
        found = lmfit.minimize(
            residual, parameters, method="least_squares", jac=jacobian, x_scale="jac", **limits
        )
    return theta_of(found.params), float((found.residual**2).sum())
