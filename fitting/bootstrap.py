"""Bands: refits of simulated curves, over several shapes of the law.

Two things make a forecast wrong: the noise of the run, and a law that is not quite right. For the first,
each replicate adds AR(1) noise to the fitted curve and refits (a parametric bootstrap; a plain residual
bootstrap covers far too little, because deviations along a run are correlated). For the second, replicates
are spread over variants of the law's shape. Where the points show the bend, all shapes agree and little
changes; where they do not, the shapes fit the points alike but forecast apart, and the band shows it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fitting.batch import Problem, fit_batch
from fitting.laws.base import Floats, Law
from fitting.noise import Noise, draw_noise
from fitting.point import PointFit

N_SHAPES = 11
_STARTS = 3


@dataclass(frozen=True)
class Draws:
    """Replicates: inner parameters [m, k] and the noise sd of each [m]."""

    theta: Floats
    sd: Floats


def fit_shapes(law: Law, ln_c: Floats, rate: Floats, point: PointFit) -> Floats:
    """The measured points fitted with each shape of the law, shape [N_SHAPES, k]; the first is the law's."""
    shapes = law.shapes(N_SHAPES)
    grid = law.starts(ln_c, rate, _STARTS)
    starts = np.concatenate([np.concatenate([point.theta[None], grid]) for _ in shapes])
    low, high = _boxes(law, ln_c, np.repeat(shapes, _STARTS + 1, axis=0))
    problem = Problem(law, ln_c, np.repeat(rate[None], len(starts), 0), low, high)
    theta, sse = fit_batch(problem, starts)
    best = sse.reshape(len(shapes), -1).argmin(-1) + np.arange(len(shapes)) * (_STARTS + 1)
    return np.asarray(theta[best])


def bootstrap(
    law: Law, ln_c: Floats, rate: Floats, point: PointFit, noise: Noise, replicates: int, seed: int
) -> Draws:
    """Replicates spread evenly over the shapes, each simulated from its shape's fit and refitted."""
    rng = np.random.default_rng(seed)
    errors, sds = draw_noise(noise, len(ln_c), replicates, rng)
    shapes = fit_shapes(law, ln_c, rate, point)
    centres = shapes[np.arange(replicates) % len(shapes)]
    low, high = _boxes(law, ln_c, centres)
    problem = Problem(law, ln_c, law.value(centres, ln_c) + errors, low, high)
    theta, _ = fit_batch(problem, centres)
    return Draws(theta, sds)


def _boxes(law: Law, ln_c: Floats, shapes: Floats) -> tuple[Floats, Floats]:
    """Bounds of each row, shape [m, k] twice: what the law holds fixed is held at the row's own shape."""
    low, high = law.bounds(ln_c)
    fixed = low == high
    return np.where(fixed, shapes, low), np.where(fixed, shapes, high)
