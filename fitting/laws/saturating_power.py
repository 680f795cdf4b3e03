"""The saturating power law: R(C) = A - D / C^B.

What the sigmoid becomes far beyond its midpoint (arXiv 2510.13786, A.4, with D = (A - R0) Cmid^B), and the
usual form for pre-training losses (Hoffmann et al., arXiv 2203.15556). It has no value at zero compute.
On curves that still rise steadily it tends to A = 1.
"""

from __future__ import annotations

import numpy as np

from fitting.laws.base import Floats, Separable


class SaturatingPower(Separable):
    name = "saturating-power"
    title = "saturating power law"
    equation = "R(C) = A - D / C^B"
    source = "arXiv 2510.13786, A.4"
    inner: tuple[str, ...] = ("D", "A", "ln_B")
    outer: tuple[str, ...] = ("A", "B", "D")
    n_free = 3
    coef_low = np.array([0.0, 0.0])
    coef_high = np.array([3.0, 1.0])

    def box(self, ln_c: Floats) -> tuple[Floats, Floats]:
        return np.log([0.1]), np.log([6.0])

    def basis(self, psi: Floats, ln_c: Floats) -> Floats:
        falling = -np.exp(-np.exp(psi) * ln_c)
        return np.stack([falling, np.ones_like(falling)], axis=-2)

    def basis_slopes(self, psi: Floats, ln_c: Floats) -> Floats:
        b = np.exp(psi)
        slope = b * ln_c * np.exp(-b * ln_c)
        return np.stack([slope, np.zeros_like(slope)], axis=-2)[..., None, :, :]

    def ln_prior(self, psi: Floats) -> Floats:
        return np.asarray(-0.5 * ((psi[..., 0] - np.log(1.0)) / 1.0) ** 2)

    def outer_values(self, theta: Floats, ln_unit: float = 0.0) -> dict[str, Floats]:
        b = np.exp(theta[..., 2])
        with np.errstate(over="ignore"):
            return {"A": theta[..., 1], "B": b, "D": theta[..., 0] * np.exp(b * ln_unit)}

    def compute_for(self, theta: Floats, rate: float) -> Floats:
        d, a, ln_b = (theta[..., i] for i in range(3))
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(rate >= a, np.inf, (np.log(d) - np.log(np.maximum(a - rate, 0))) / np.exp(ln_b))
