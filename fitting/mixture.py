"""What a forecast is made of: replicates of whole curves, of one run or of a recipe's runs averaged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from fitting.curve import Floats
from fitting.parts import Part

_GRID = 400
_ASYMPTOTE_GRID = np.log(1e4)


class Ensemble(Protocol):
    """m replicates of a curve R(C); `ln_c` [c] is ln of compute in the curve's unit."""

    @property
    def size(self) -> int:
        """m."""
        ...

    def point(self, ln_c: Floats) -> Floats:
        """The point forecast [c], in [0, 1]."""
        ...

    def curves(self, ln_c: Floats) -> Floats:
        """Replicates of the curve, shape [m, c], in [0, 1]."""
        ...

    def noise_sd(self) -> Floats:
        """Noise of a single evaluation around each replicate, shape [m]."""
        ...

    def outer(self) -> dict[str, float]:
        """The parameters that users see: A (of laws that have one) and those of the leading law."""
        ...

    def outer_draws(self) -> dict[str, Floats]:
        """Replicates of the same, each of any length."""
        ...

    def compute_for(self, rate: float) -> float:
        """ln C at which the point forecast reaches `rate`, +inf if never."""
        ...

    def compute_for_draws(self, rate: float) -> Floats:
        """Replicates of the same, shape [m]."""
        ...


@dataclass(frozen=True)
class Mixture:
    """One run: laws with weights. Replicate i is replicate i of the law `assigned[i]`."""

    parts: tuple[Part, ...]
    weights: tuple[float, ...]
    assigned: np.ndarray

    @classmethod
    def of(
        cls, parts: list[Part], weights: list[float], replicates: int, rng: np.random.Generator
    ) -> Mixture:
        """Replicates are dealt out in proportion to the weights, in random order."""
        ends = np.round(np.cumsum(weights) / np.sum(weights) * replicates).astype(int)
        assigned = np.searchsorted(ends, np.arange(replicates), side="right")
        return cls(tuple(parts), tuple(weights), rng.permutation(np.minimum(assigned, len(parts) - 1)))

    @property
    def size(self) -> int:
        return len(self.assigned)

    @property
    def lead(self) -> Part:
        """The law whose parameters are shown: the sigmoid where it takes part, else the heaviest."""
        named = {part.law.name: part for part in self.parts}
        return named.get("sigmoid") or self.parts[int(np.argmax(self.weights))]

    @property
    def asymptotic(self) -> list[int]:
        """Which parts have an asymptote."""
        return [i for i, part in enumerate(self.parts) if "A" in part.law.outer]

    @property
    def weight_with_a(self) -> float:
        """Share of the weight that lies on laws with an asymptote."""
        return float(sum(self.weights[i] for i in self.asymptotic) / sum(self.weights))

    def point(self, ln_c: Floats) -> Floats:
        """Of one law its fit, of several the median of the replicates."""
        if len(self.parts) == 1:
            return self.parts[0].value(ln_c)
        return np.asarray(np.median(self.curves(ln_c), axis=0))

    def curves(self, ln_c: Floats) -> Floats:
        found = np.empty((self.size, len(ln_c)))
        for i, part in enumerate(self.parts):
            rows = self.assigned == i
            found[rows] = part.replicates(ln_c, rows)
        return np.clip(found, 0.0, 1.0)

    def noise_sd(self) -> Floats:
        found = np.empty(self.size)
        for i, part in enumerate(self.parts):
            rows = self.assigned == i
            found[rows] = part.draws.sd[rows]
        return found

    def outer(self) -> dict[str, float]:
        values = self.lead.outer()
        if "A" in values:
            weight = [self.weights[i] for i in self.asymptotic]
            values["A"] = float(
                np.average([self.parts[i].outer()["A"] for i in self.asymptotic], weights=weight)
            )
        return values

    def outer_draws(self) -> dict[str, Floats]:
        draws = dict(self.lead.outer_draws())
        if "A" in draws:
            dealt = [self.parts[i].outer_draws(self.assigned == i)["A"] for i in self.asymptotic]
            merged = np.concatenate(dealt)
            draws["A"] = merged if len(merged) else draws["A"]
        return draws

    def compute_for(self, rate: float) -> float:
        if len(self.parts) == 1:
            return self.parts[0].compute_for(rate)
        return float(np.quantile(self.compute_for_draws(rate), 0.5, method="inverted_cdf"))

    def compute_for_draws(self, rate: float) -> Floats:
        """Replicates of the null that lie above `rate` from the last point on do not say where it was reached: the
        other laws' replicates stand in for them."""
        found = np.empty(self.size)
        for i, part in enumerate(self.parts):
            rows = self.assigned == i
            found[rows] = part.compute_for_draws(rate, rows)
        silent = np.isnan(found)
        if silent.all():
            return np.full(self.size, self.parts[0].ln_last)
        return np.where(silent, np.resize(found[~silent], self.size), found)


@dataclass(frozen=True)
class Pooled:
    """A recipe: the mean over its runs. Replicate i averages the runs `chosen[i]` (resampled: a cluster bootstrap)
    and is shifted by `shift[i]`, what repeats of the recipe differ by, in proportion to the gain made.

    `ln_first`, `ln_last`: ln of the first and the last compute that was seen.
    """

    runs: tuple[Mixture, ...]
    chosen: np.ndarray
    shift: Floats
    ln_first: float
    ln_last: float

    @property
    def size(self) -> int:
        return len(self.shift)

    def point(self, ln_c: Floats) -> Floats:
        return np.asarray(np.mean([run.point(ln_c) for run in self.runs], axis=0))

    def noise_sd(self) -> Floats:
        return np.asarray(np.mean([run.noise_sd() for run in self.runs], axis=0))

    def curves(self, ln_c: Floats) -> Floats:
        means = np.stack([run.curves(ln_c) for run in self.runs])[
            self.chosen, np.arange(self.size)[:, None]
        ].mean(1)
        start, end = self.point(np.array([self.ln_first, self.ln_last]))
        gain = np.clip((self.point(ln_c) - start) / max(end - start, 1e-6), 0.0, 1.0)
        return np.clip(means + self.shift[:, None] * gain, 0.0, 1.0)

    def outer(self) -> dict[str, float]:
        each = [run.outer() for run in self.runs]
        return {name: float(_mean_of(name, np.array([values[name] for values in each]))) for name in each[0]}

    def outer_draws(self) -> dict[str, Floats]:
        rows = np.arange(self.size)
        found: dict[str, Floats] = {}
        draws = [run.outer_draws() for run in self.runs]
        for name in draws[0]:
            stacked = np.stack([np.resize(d[name], self.size) for d in draws])
            found[name] = _mean_of(name, stacked[self.chosen, rows[:, None]].T)
        if "A" in found:
            found["A"] = np.clip(found["A"] + self.shift, 0.0, 1.0)
        return found

    def compute_for(self, rate: float) -> float:
        grid = self._grid()
        return float(_crossings(grid, self.point(grid)[None], rate)[0])

    def compute_for_draws(self, rate: float) -> Floats:
        grid = self._grid()
        return _crossings(grid, self.curves(grid), rate)

    def _grid(self) -> Floats:
        return np.linspace(self.ln_first, self.ln_last + _ASYMPTOTE_GRID, _GRID)


def _mean_of(name: str, values: Floats) -> Floats:
    """Mean over the first axis; of scale parameters the geometric one."""
    if name in ("B", "Cmid", "tau", "D", "K"):
        return np.asarray(np.exp(np.mean(np.log(np.maximum(values, 1e-300)), axis=0)))
    return np.asarray(np.mean(values, axis=0))


def _crossings(grid: Floats, curves: Floats, rate: float) -> Floats:
    """Where curves [m, g] first reach `rate` on the grid [g], linear in between; +inf where they do not."""
    above = curves >= rate
    first = above.argmax(axis=1)
    rows = np.arange(len(curves))
    before = np.maximum(first - 1, 0)
    low, high = curves[rows, before], curves[rows, first]
    share = np.where(high > low, (rate - low) / np.where(high > low, high - low, 1.0), 0.0)
    found = grid[before] + share * (grid[first] - grid[before])
    found = np.where(first == 0, -np.inf, found)
    return np.where(above.any(axis=1), found, np.inf)
