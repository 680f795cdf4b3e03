"""What a forecast is asked for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from fitting.errors import FitError
from fitting.laws import LAWS

MAX_REPLICATES = 20_000
MAX_TARGETS = 1_000


@dataclass(frozen=True)
class ForecastOptions:
    """Options of a forecast.

    Args:
        law: name of a law in `LAWS`.
        min_compute, max_compute: the window of points that are fitted; points outside are shown, not used.
        level: coverage of the intervals, between 0 and 1.
        seed: of the bootstrap. Same points, options and seed give the same answer.
        at: compute values to forecast the score at.
        reach: pass rates to forecast the compute for.
        replicates: bootstrap replicates behind the intervals.
        benchmark: which benchmark the points are of; carried along, not used.

    Raises `FitError` that names the option and the remedy.
    """

    law: str = "sigmoid"
    min_compute: float | None = None
    max_compute: float | None = None
    level: float = 0.9
    seed: int = 0
    at: tuple[float, ...] = ()
    reach: tuple[float, ...] = ()
    replicates: int = 1000
    benchmark: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "at", tuple(float(c) for c in self.at))
        object.__setattr__(self, "reach", tuple(float(r) for r in self.reach))
        if self.law not in LAWS:
            raise FitError(f"law '{self.law}' is not known; use one of: {', '.join(LAWS)}", "law")
        if not 0 < self.level < 1:
            raise FitError(
                f"level is {self.level:g}; give a coverage above 0 and below 1, such as 0.9", "level"
            )
        if not 100 <= self.replicates <= MAX_REPLICATES:
            raise FitError(f"replicates is {self.replicates}; give 100 to {MAX_REPLICATES}", "replicates")
        if self.seed < 0:
            raise FitError(f"seed is {self.seed}; give a whole number from 0", "seed")
        self._check_window()
        self._check_targets()

    def _check_window(self) -> None:
        for field in ("min_compute", "max_compute"):
            value = getattr(self, field)
            if value is not None and not (math.isfinite(value) and value >= 0):
                raise FitError(f"{field} is {value:g}; give a finite compute from 0", field)
        if None not in (self.min_compute, self.max_compute) and self.max_compute <= self.min_compute:  # type: ignore[operator]
            raise FitError(
                f"max_compute ({self.max_compute:g}) must be above min_compute ({self.min_compute:g})",
                "max_compute",
            )

    def _check_targets(self) -> None:
        if len(self.at) > MAX_TARGETS or len(self.reach) > MAX_TARGETS:
            raise FitError(f"at and reach take at most {MAX_TARGETS} values", "at")
        if any(not math.isfinite(c) or c <= 0 for c in self.at):
            raise FitError("at must be a finite compute above 0", "at")
        if any(not 0 <= r <= 1 for r in self.reach):
            raise FitError("reach must be a pass rate from 0 to 1", "reach")

    def key(self) -> dict[str, Any]:
        """What decides the numbers, as JSON-ready data, for hashing."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "benchmark"}
