"""How a forecast is held against what happened. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Sequence

#: Levels of the intervals whose ends are the quantiles at (i - 1/2)/20, i = 1…20.
LEVELS = tuple(round(1 - (2 * i - 1) / 20, 10) for i in range(1, 11))
#: Those quantiles' probabilities, ascending.
PROBABILITIES = tuple((2 * i - 1) / 40 for i in range(1, 21))


def crps(quantiles: Sequence[float], actual: float) -> float:
    """The continuous ranked probability score, in units of the score itself; 0 is perfect.

    CRPS is twice the pinball loss, averaged over all probabilities (Gneiting & Ranjan 2011, J. Bus. Econ.
    Stat. 29:411, eq. 6); here over the 20 of `PROBABILITIES`. For a forecast that is one number it is
    the absolute error.
    """
    if len(quantiles) != len(PROBABILITIES):
        raise ValueError(f"{len(quantiles)} quantiles; needs {len(PROBABILITIES)}")
    losses = [
        (actual - q) * (p if actual >= q else p - 1) for p, q in zip(PROBABILITIES, quantiles, strict=True)
    ]
    return 2 * sum(losses) / len(losses)


def value_at(compute: float, points: Sequence[tuple[float, float]]) -> float | None:
    """The pass rate at `compute`, linear in log compute between the evaluations on both sides of it.

    `points` are (compute, pass rate). None when the run has not come so far, or began later.
    """
    ordered = sorted(point for point in points if point[0] > 0)
    below = [point for point in ordered if point[0] <= compute]
    above = [point for point in ordered if point[0] >= compute]
    if not below or not above:
        return None
    (c0, r0), (c1, r1) = below[-1], above[0]
    if c0 == c1:
        same = [rate for c, rate in ordered if c == c0]
        return sum(same) / len(same)
    weight = math.log(compute / c0) / math.log(c1 / c0)
    return r0 + weight * (r1 - r0)
