"""The null: tomorrow's score is the last one, and drifts as a random walk over ln C.

Every law has to beat it. Its only parameter is the last score; how fast it drifts is measured from the run
(`fitting.parts`).
"""

from __future__ import annotations

import numpy as np

from fitting.laws.base import Floats, Separable


class LastValue(Separable):
    name = "last-value"
    title = "last value"
    equation = "R(C) = R(C_last)"
    source = "the naive forecast of the forecasting literature (Hyndman & Athanasopoulos, section 5.2)"
    inner: tuple[str, ...] = ("R_last",)
    outer: tuple[str, ...] = ("R_last",)
    n_free = 1
    at_zero = True
    coef_low = np.array([0.0])
    coef_high = np.array([1.0])

    def box(self, ln_c: Floats) -> tuple[Floats, Floats]:
        return np.empty(0), np.empty(0)

    def basis(self, psi: Floats, ln_c: Floats) -> Floats:
        return np.ones((*psi.shape[:-1], 1, len(ln_c)))

    def starts(self, ln_c: Floats, rate: Floats, count: int) -> Floats:
        return np.full((1, 1), rate[-1])

    def outer_values(self, theta: Floats, ln_unit: float = 0.0) -> dict[str, Floats]:
        return {"R_last": theta[..., 0]}

    def compute_for(self, theta: Floats, rate: float) -> Floats:
        return np.where(theta[..., 0] >= rate, -np.inf, np.inf)
