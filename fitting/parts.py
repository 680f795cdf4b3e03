"""One law fitted to one curve: the point fit and its replicates, in a unit of compute of its own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fitting.curve import Floats
from fitting.laws.base import LN_BEFORE_RL, Law, ln_centre
from fitting.laws.last_value import LastValue
from fitting.noise import step_sd
from fitting.posterior import Draws, Series, posterior

#: Beyond this many points, neighbours are averaged into about as many bins for the replicates: the time of a
#: forecast then does not depend on the length of the run. The point fit uses every point.
MAX_POINTS = 128


@dataclass(frozen=True)
class Part:
    """A fitted law.

    `theta` [k]: the point fit; `draws`: replicates; `wander` [m]: how far each has moved from the law at one
    ln unit of compute beyond the last point, growing with its root (a random walk's; 0 for all but the null);
    `ln_unit`: compute is counted in exp(ln_unit); `ln_last`: ln of the last compute that was seen;
    `at_bound`: inner parameters of the point fit that lie on a bound.
    """

    law: Law
    theta: Floats
    draws: Draws
    wander: Floats
    ln_unit: float
    ln_last: float
    at_bound: tuple[str, ...] = ()

    def value(self, ln_c: Floats) -> Floats:
        """The point fit at ln C [c], in [0, 1]."""
        return np.clip(self.law.value(self.theta, self._inner(ln_c)), 0.0, 1.0)

    def replicates(self, ln_c: Floats, rows: np.ndarray | slice = slice(None)) -> Floats:
        """The replicates' curves at ln C [c], shape [m, c], not clipped."""
        beyond = np.sqrt(np.maximum(ln_c - self.ln_last, 0.0))
        return self.law.value(self.draws.theta[rows], self._inner(ln_c)) + self.wander[rows, None] * beyond

    def outer(self) -> dict[str, float]:
        """The point fit's parameters as users see them."""
        return {name: float(v) for name, v in self.law.outer_values(self.theta, self.ln_unit).items()}

    def outer_draws(self, rows: np.ndarray | slice = slice(None)) -> dict[str, Floats]:
        return self.law.outer_values(self.draws.theta[rows], self.ln_unit)

    def compute_for(self, rate: float) -> float:
        """ln C at which the point fit reaches `rate`; +inf if never, -inf if it lies above from the start."""
        found = float(self.law.compute_for(self.theta, rate)) + self.ln_unit
        return self.ln_last if isinstance(self.law, LastValue) and found == -np.inf else found

    def compute_for_draws(self, rate: float, rows: np.ndarray | slice = slice(None)) -> Floats:
        """The same of the replicates, shape [m]; NaN where the null has been above `rate` already."""
        if not isinstance(self.law, LastValue):
            return self.law.compute_for(self.draws.theta[rows], rate) + self.ln_unit
        level, wander = self.draws.theta[rows, 0], self.wander[rows]
        ahead = self.ln_last + ((rate - level) / np.maximum(wander, 1e-12)) ** 2
        return np.where(level >= rate, np.nan, np.where(wander > 0, ahead, np.inf))

    def _inner(self, ln_c: Floats) -> Floats:
        return np.where(ln_c > LN_BEFORE_RL, ln_c - self.ln_unit, LN_BEFORE_RL)


def series_of(law: Law, series: Series) -> tuple[Series, float]:
    """The points that the law can use, in its own unit, and ln of that unit."""
    seen = series.ln_c > LN_BEFORE_RL
    keep = seen | law.at_zero
    ln_unit = ln_centre(series.ln_c)
    ln_c = np.where(seen, series.ln_c - ln_unit, LN_BEFORE_RL)
    return Series(ln_c[keep], series.rate[keep], series.spread[keep]), ln_unit


def binned(series: Series) -> Series:
    """At most `MAX_POINTS` means of neighbours (zero compute apart), each with the spread of a mean."""
    seen = series.ln_c > LN_BEFORE_RL
    n = int(seen.sum())
    if n <= MAX_POINTS:
        return series
    groups = np.array_split(np.flatnonzero(seen), MAX_POINTS)
    weight = 1.0 / series.spread**2

    def mean(values: Floats) -> Floats:
        return np.array([np.average(values[g], weights=weight[g]) for g in groups])

    size = n / MAX_POINTS
    spread = np.array([np.sqrt(size / weight[g].sum()) for g in groups])
    before = ~seen
    return Series(
        np.concatenate([series.ln_c[before], mean(series.ln_c)]),
        np.concatenate([series.rate[before], mean(series.rate)]),
        np.concatenate([series.spread[before] * np.sqrt(size), spread]),
    )


def draw_part(
    law: Law,
    series: Series,
    theta: Floats | None,
    shapes: Floats | None,
    replicates: int,
    rng: np.random.Generator,
) -> Part:
    """The posterior of `law` for the series. `theta` is its point fit; None takes the best of a coarse grid."""
    own, ln_unit = series_of(law, series)
    if theta is None:
        theta = law.starts(own.ln_c, own.rate, 1)[0]
    ln_last = float(series.ln_c[-1])
    if isinstance(law, LastValue):
        draws, wander = _random_walk(own, replicates, rng)
    else:
        draws = posterior(law, binned(own), law.split(theta)[1], shapes, replicates, rng)
        wander = np.zeros(replicates)
    return Part(law, theta, draws, wander, ln_unit, ln_last)


def _random_walk(series: Series, replicates: int, rng: np.random.Generator) -> tuple[Draws, Floats]:
    """The last level, and how far it wanders per root ln unit of compute, measured over a third of the points."""
    seen = series.ln_c > LN_BEFORE_RL
    ln_c, rate = series.ln_c[seen], series.rate[seen]
    lag = max(len(rate) // 3, 1)
    moved, apart = rate[lag:] - rate[:-lag], ln_c[lag:] - ln_c[:-lag]
    far = apart > 0
    dof = max(float(far.sum()) / lag, 1.0) + 2.0
    drift = float(np.sqrt(np.mean(moved[far] ** 2 / apart[far]))) if far.any() else 0.0
    sd = max(step_sd(rate), 1e-4)
    level = np.clip(rate[-1] + sd * rng.standard_normal(replicates), 0.0, 1.0)
    wander = drift * np.sqrt(dof / rng.chisquare(dof, replicates)) * rng.standard_normal(replicates)
    return Draws(level[:, None], np.full(replicates, sd), np.zeros(replicates)), wander
