"""A power law in what is still missing: 1 - R(C) = K / C^b, a straight line of ln(1 - R) over ln C.

Source: Tan et al., arXiv 2509.25300, equation 1 (test loss 1 - pass rate against compute, at a fixed model
size). It describes runs that do not saturate; its limit is 1 by construction, so it has no asymptote to
report.
"""

from __future__ import annotations

import numpy as np

from fitting.laws.base import Floats, Separable


class Power(Separable):
    name = "power"
    title = "power law in 1 - R"
    equation = "1 - R(C) = K / C^b"
    source = "arXiv 2509.25300, equation 1"
    inner: tuple[str, ...] = ("K", "b")
    outer: tuple[str, ...] = ("K", "b")
    n_free = 2
    offset = 1.0
    coef_low = np.array([0.0])
    coef_high = np.array([1.5])

    def box(self, ln_c: Floats) -> tuple[Floats, Floats]:
        return np.array([0.0]), np.array([2.0])

    def basis(self, psi: Floats, ln_c: Floats) -> Floats:
        return np.asarray(-np.exp(-psi * ln_c)[..., None, :])

    def basis_slopes(self, psi: Floats, ln_c: Floats) -> Floats:
        return np.asarray((ln_c * np.exp(-psi * ln_c))[..., None, None, :])

    def outer_values(self, theta: Floats, ln_unit: float = 0.0) -> dict[str, Floats]:
        with np.errstate(over="ignore"):
            return {"K": theta[..., 0] * np.exp(theta[..., 1] * ln_unit), "b": theta[..., 1]}

    def compute_for(self, theta: Floats, rate: float) -> Floats:
        k, b = theta[..., 0], theta[..., 1]
        with np.errstate(divide="ignore", invalid="ignore"):
            found = (np.log(k) - np.log(max(1.0 - rate, 0.0))) / b
        return np.where((rate >= 1.0) | (b <= 0.0), np.inf, found)
