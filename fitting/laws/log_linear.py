"""The log-linear law: R(C) = a + b ln C.

The first-order expansion of the sigmoid around any compute (arXiv 2607.16097 reports runs by it); bounded
scores leave it in the end, so it has no asymptote and is read only between 0 and 1.
"""

from __future__ import annotations

import numpy as np

from fitting.laws.base import Floats, Separable


class LogLinear(Separable):
    name = "log-linear"
    title = "log-linear"
    equation = "R(C) = a + b ln C"
    source = "arXiv 2607.16097"
    inner: tuple[str, ...] = ("b", "a")
    outer: tuple[str, ...] = ("a", "b")
    n_free = 2
    coef_low = np.array([-1.0, -1.0])
    coef_high = np.array([1.0, 2.0])

    def box(self, ln_c: Floats) -> tuple[Floats, Floats]:
        return np.empty(0), np.empty(0)

    def basis(self, psi: Floats, ln_c: Floats) -> Floats:
        line = np.stack([ln_c, np.ones_like(ln_c)])
        return np.broadcast_to(line, (*psi.shape[:-1], *line.shape))

    def outer_values(self, theta: Floats, ln_unit: float = 0.0) -> dict[str, Floats]:
        return {"a": theta[..., 1] - theta[..., 0] * ln_unit, "b": theta[..., 0]}

    def compute_for(self, theta: Floats, rate: float) -> Floats:
        b, a = theta[..., 0], theta[..., 1]
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(b <= 0.0, np.inf, (rate - a) / b)
