"""Exponential saturation: R(C) = A - (A - R0) exp(-C / tau).

The form that Nimmaturi et al. (arXiv 2507.18014, revised) use over the training fraction: the gain still to
make shrinks by 1/e every tau.
"""

from __future__ import annotations

import numpy as np

from fitting.laws.base import Bools, Floats, Separable


class Exponential(Separable):
    name = "exponential"
    title = "exponential saturation"
    equation = "R(C) = A - (A - R0) exp(-C / tau)"
    source = "arXiv 2507.18014"
    inner: tuple[str, ...] = ("R0", "A", "ln_tau")
    outer: tuple[str, ...] = ("A", "tau", "R0")
    n_free = 3
    at_zero = True
    coef_low = np.array([0.0, 0.0])
    coef_high = np.array([1.0, 1.0])

    def box(self, ln_c: Floats) -> tuple[Floats, Floats]:
        """tau from a tenth of the first compute to 30 times the last."""
        seen = ln_c[ln_c > -1000.0]
        return np.array([seen.min() - np.log(10.0)]), np.array([seen.max() + np.log(30.0)])

    def basis(self, psi: Floats, ln_c: Floats) -> Floats:
        left = np.exp(-np.exp(np.minimum(ln_c - psi, 50.0)))
        return np.stack([left, 1.0 - left], axis=-2)

    def basis_slopes(self, psi: Floats, ln_c: Floats) -> Floats:
        ratio = np.exp(np.minimum(ln_c - psi, 50.0))
        slope = ratio * np.exp(-ratio)
        return np.stack([slope, -slope], axis=-2)[..., None, :, :]

    def allowed(self, coef: Floats) -> Bools:
        return np.asarray(coef[..., 0] < coef[..., 1])

    def outer_values(self, theta: Floats, ln_unit: float = 0.0) -> dict[str, Floats]:
        return {"A": theta[..., 1], "tau": np.exp(theta[..., 2] + ln_unit), "R0": theta[..., 0]}

    def compute_for(self, theta: Floats, rate: float) -> Floats:
        r0, a, ln_tau = (theta[..., i] for i in range(3))
        with np.errstate(divide="ignore", invalid="ignore"):
            left = (a - rate) / (a - r0)
            found = ln_tau + np.log(-np.log(left))
        return np.where(left <= 0.0, np.inf, np.where(left >= 1.0, -np.inf, found))
