"""Many bounded least-squares fits at once: Levenberg–Marquardt vectorised over replicates.

A thousand refits in a Python loop take seconds, in one batch of arrays a small part of one. The reported
point fit is lmfit's (`fitting.point`); a test holds the two against each other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fitting.laws.base import Floats, Law

_MAX_STEPS = 200
_CHUNK = 2048  # replicates at once: bounds the memory


@dataclass(frozen=True)
class Problem:
    """Fits to do: `rates` [m, n] at `ln_c` [n], each within its box `low`, `high` [m, k].

    Equal bounds hold a parameter fixed. `weights` [n] multiply the residuals (1 / sd of each point, relative).
    """

    law: Law
    ln_c: Floats
    rates: Floats
    low: Floats
    high: Floats
    weights: Floats | None = None

    def rows(self, index: slice | NDArray[np.intp]) -> Problem:
        return Problem(
            self.law, self.ln_c, self.rates[index], self.low[index], self.high[index], self.weights
        )

    def weighted(self, values: Floats) -> Floats:
        """Values [..., n] times the weights of their points."""
        return values if self.weights is None else values * self.weights

    def sse(self, theta: Floats) -> Floats:
        """Sum of squared residuals of each row, shape [m]."""
        return np.asarray((self.weighted(self.rates - self.law.value(theta, self.ln_c)) ** 2).sum(-1))


def fit_batch(problem: Problem, starts: Floats) -> tuple[Floats, Floats]:
    """Fits every row from its own start [m, k].

    Returns inner parameters [m, k] and sums of squares [m].
    """
    slices = [slice(i, i + _CHUNK) for i in range(0, len(problem.rates), _CHUNK)]
    parts = [_fit_chunk(problem.rows(s), starts[s]) for s in slices]
    return np.concatenate([theta for theta, _ in parts]), np.concatenate([sse for _, sse in parts])


def _fit_chunk(problem: Problem, starts: Floats) -> tuple[Floats, Floats]:
    theta = np.clip(starts, problem.low, problem.high)
    sse = problem.sse(theta)
    damping = np.full(len(theta), 1e-3)
    active = np.arange(len(theta))
    for _ in range(_MAX_STEPS):
        if not len(active):
            break
        here = problem.rows(active)
        now = theta[active]
        step, gradient = _step(here, now, damping[active])
        new = np.clip(now + np.clip(step, -2.0, 2.0), here.low, here.high)
        new_sse = here.sse(new)
        better = new_sse <= sse[active]
        gained = sse[active] - new_sse
        moved = np.abs(new - now).max(-1)
        theta[active[better]] = new[better]
        sse[active[better]] = new_sse[better]
        damping[active] = np.where(better, np.maximum(damping[active] * 0.2, 1e-12), damping[active] * 6.0)
        settled = better & (gained <= 1e-12 * sse[active] + 1e-30) & (moved < 1e-7)
        flat = np.abs(gradient).max(-1) < 1e-14
        active = active[~(settled | flat | (damping[active] > 1e8))]
    return theta, sse


def _step(problem: Problem, theta: Floats, damping: Floats) -> tuple[Floats, Floats]:
    """The damped Gauss–Newton step and gradient of each row; what presses against a bound stays there."""
    value, jacobian = problem.law.value_and_jacobian(theta, problem.ln_c)
    residual = problem.weighted(problem.rates - value)
    if problem.weights is not None:
        jacobian = jacobian * problem.weights[:, None]
    gradient = np.asarray((jacobian * residual[..., None]).sum(-2))
    normal = np.swapaxes(jacobian, -1, -2) @ jacobian
    held = ((theta <= problem.low) & (gradient <= 0)) | ((theta >= problem.high) & (gradient >= 0))
    gradient = np.where(held, 0.0, gradient)
    normal = np.where(held[:, :, None] | held[:, None, :], 0.0, normal)
    index = np.arange(theta.shape[-1])
    diagonal = normal[:, index, index]
    damped = diagonal + damping[:, None] * np.maximum(diagonal, 1e-12) + 1e-15
    normal[:, index, index] = np.where(held, 1.0, damped)
    return np.asarray(np.linalg.solve(normal, gradient[..., None])[..., 0]), gradient
