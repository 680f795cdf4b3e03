"""The published fitting procedure, so that published numbers can be reproduced.

arXiv 2510.13786, A.5: early points are dropped (below about 1,500 GPU-hours), A is tried on a grid of 0.005 and
Cmid on 100 values, for each pair B alone is fitted by least squares, and the pair with the smallest sum of
squares wins. R0 is not fitted. The published figures were not made with one grid of Cmid (their values lie on
several), so the grid here is the run's own and its step is reported. There are no intervals in the procedure:
those shown are the sigmoid's.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fitting.batch import Problem, fit_batch
from fitting.curve import Curve, Floats
from fitting.errors import FitError
from fitting.laws import LAWS
from fitting.laws.base import LN_BEFORE_RL
from fitting.options import ForecastOptions
from fitting.point import PointFit
from fitting.posterior import Series

A_STEP = 0.005
A_RANGE = (0.450, 0.800)
CMID_VALUES = 100
#: The published cut, of runs in GPU-hours.
DROPPED_BELOW_GPU_HOURS = 1_500.0


def paper_window(curve: Curve, options: ForecastOptions) -> tuple[ForecastOptions, tuple[str, ...]]:
    """The options with the published cut where none is given, and notes on what was done."""
    notes = []
    if options.min_compute is None and curve.unit == "gpu_hours":
        options = replace(options, min_compute=DROPPED_BELOW_GPU_HOURS)
        notes.append(f"points below {DROPPED_BELOW_GPU_HOURS:,.0f} GPU-hours are dropped, as published")
    within = curve.compute[curve.compute > 0]
    if options.max_compute is not None:
        within = within[within <= options.max_compute]
    if isinstance(options.min_compute, float):
        within = within[within >= options.min_compute]
    if len(within):
        grid = cmid_grid(within)
        notes.append(
            f"grids: A in steps of {A_STEP:g}, Cmid from {grid[0]:.6g} to {grid[-1]:.6g} "
            f"in steps of {grid[1] - grid[0]:.4g}"
        )
    notes.append("R0 is the score at the lowest compute; intervals are the sigmoid's, not the procedure's")
    return options, tuple(notes)


def cmid_grid(compute: Floats) -> Floats:
    """100 values from a fifteenth of the first compute to the last: of a window from 1,500 to 4,000 GPU-hours
    exactly linspace(100, 4000, 100), on which all small published runs lie."""
    return np.linspace(float(compute.min()) / 15.0, float(compute.max()), CMID_VALUES)


def a_grid(top: float) -> Floats:
    """The published grid of A, or multiples of its step up to 1 for scores `top` that it does not hold."""
    low, high = A_RANGE if A_RANGE[0] <= top <= A_RANGE[1] - 0.05 else (A_STEP, 1.0)
    return np.round(np.arange(round(low / A_STEP), round(high / A_STEP) + 1) * A_STEP, 3)


def fit_paper(own: Series, ln_unit: float, r0: float) -> PointFit:
    """The best pair of A and Cmid, with B, for points in the law's own unit of compute (`parts.series_of`).

    `r0`: the score at the lowest compute of the whole curve.
    """
    law = LAWS["sigmoid"]
    compute = np.exp(own.ln_c[own.ln_c > LN_BEFORE_RL] + ln_unit)
    a, cmid = (axis.ravel() for axis in np.meshgrid(a_grid(float(own.rate.max())), cmid_grid(compute)))
    above = a > r0 + 1e-6
    if not above.any():
        raise FitError(
            "no score lies above the first one: there is nothing that the procedure can fit", "law"
        )
    a, cmid = a[above], cmid[above]
    low_b, high_b = (bound[3] for bound in law.bounds(own.ln_c))
    start, low, high = (
        np.stack(
            [
                np.full_like(a, r0),
                (a - r0) / (1.0 - r0),
                np.log(cmid) - ln_unit,
                np.full_like(a, ln_b),
                0.0 * a,
            ],
            -1,
        )
        for ln_b in (0.0, low_b, high_b)
    )
    problem = Problem(law, own.ln_c, np.broadcast_to(own.rate, (len(a), len(own))), low, high)
    theta, sse = fit_batch(problem, start)
    best = theta[int(sse.argmin())]
    return PointFit(best, own.rate - law.value(best, own.ln_c), (), np.ones(len(own)))
