"""What a forecast is asked for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from fitting.errors import FitError
from fitting.laws import LAWS
from fitting.point import LOSSES

MAX_REPLICATES = 20_000
MAX_TARGETS = 1_000
#: `law`: the laws combined by how well they have forecast the run so far. `min_compute`: chosen by stability.
AUTO = "auto"
#: `law`: the published fitting procedure.
PAPER = "scalerl-paper"
#: What `law` may be, with a line for people.
METHODS: dict[str, str] = {
    AUTO: "laws combined by how well they have forecast this run so far",
    **{law.name: f"{law.title}: {law.equation}" for law in LAWS.values()},
    PAPER: "the sigmoid by the published procedure: A and Cmid on a grid, B by least squares",
}
BANDS = ("posterior", "bootstrap")
#: Spread of A between repeats of one recipe that is assumed before several are seen: the paper's margin of
#: ±0.015 over three runs (arXiv 2510.13786, A.7) is about two standard deviations.
SEED_SD = 0.0075


@dataclass(frozen=True)
class ForecastOptions:
    """Options of a forecast.

    Args:
        law: "auto", the name of a law in `LAWS`, or "scalerl-paper".
        min_compute, max_compute: the window of points that are fitted; points outside are shown, not used.
            `min_compute` may be "auto": chosen by the stability of the fit, from points in the window alone.
        level: coverage of the intervals, between 0 and 1.
        seed: of the replicates. Same points, options and seed give the same answer.
        at: compute values to forecast the score at.
        reach: pass rates to forecast the compute for.
        replicates: how many stand behind the intervals.
        bands: "posterior" (default), or "bootstrap" (an AR(1) parametric bootstrap, which takes the noise as
            measured; of one law only).
        loss: of the point fit: "linear" (least squares), or the robust "soft_l1", "huber", "cauchy".
        seed_sd: spread of A between repeats of a recipe that is assumed before several are seen.
        price: what one unit of compute costs, and `worth`: what 0.01 of pass rate is worth, in one currency;
            with both the forecast says up to where more compute pays.
        details: also lmfit's correlations and profile-likelihood intervals (slower).
        benchmark: which benchmark the points are of; carried along, not used.

    Raises `FitError` that names the option and the remedy.
    """

    law: str = AUTO
    min_compute: float | str | None = None
    max_compute: float | None = None
    level: float = 0.9
    seed: int = 0
    at: tuple[float, ...] = ()
    reach: tuple[float, ...] = ()
    replicates: int = 1000
    bands: str = "posterior"
    loss: str = "linear"
    seed_sd: float = SEED_SD
    price: float | None = None
    worth: float | None = None
    details: bool = False
    benchmark: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "at", tuple(float(c) for c in self.at))
        object.__setattr__(self, "reach", tuple(float(r) for r in self.reach))
        _check_name("law", self.law, METHODS)
        _check_name("bands", self.bands, BANDS)
        _check_name("loss", self.loss, LOSSES)
        if self.bands == "bootstrap" and self.law == AUTO:
            raise FitError("bands 'bootstrap' are of one law; choose one, such as law 'sigmoid'", "bands")
        if not 0 < self.level < 1:
            raise FitError(
                f"level is {self.level:g}; give a coverage above 0 and below 1, such as 0.9", "level"
            )
        if not 100 <= self.replicates <= MAX_REPLICATES:
            raise FitError(f"replicates is {self.replicates}; give 100 to {MAX_REPLICATES}", "replicates")
        if self.seed < 0:
            raise FitError(f"seed is {self.seed}; give a whole number from 0", "seed")
        if not 0 <= self.seed_sd < 0.5:
            raise FitError(f"seed_sd is {self.seed_sd:g}; give a pass-rate spread from 0 to 0.5", "seed_sd")
        self._check_window()
        self._check_targets()
        self._check_value()

    def _check_window(self) -> None:
        if isinstance(self.min_compute, str) and self.min_compute != AUTO:
            raise FitError(f"min_compute is '{self.min_compute}'; give a compute or 'auto'", "min_compute")
        for field in ("min_compute", "max_compute"):
            value = getattr(self, field)
            if value in (None, AUTO):
                continue
            if not (math.isfinite(value) and value >= 0):
                raise FitError(f"{field} is {value:g}; give a finite compute from 0", field)
        low, high = self.min_compute, self.max_compute
        if not isinstance(low, str) and low is not None and high is not None and high <= low:
            raise FitError(f"max_compute ({high:g}) must be above min_compute ({low:g})", "max_compute")

    def _check_targets(self) -> None:
        if len(self.at) > MAX_TARGETS or len(self.reach) > MAX_TARGETS:
            raise FitError(f"at and reach take at most {MAX_TARGETS} values", "at")
        if any(not math.isfinite(c) or c <= 0 for c in self.at):
            raise FitError("at must be a finite compute above 0", "at")
        if any(not 0 <= r <= 1 for r in self.reach):
            raise FitError("reach must be a pass rate from 0 to 1", "reach")

    def _check_value(self) -> None:
        for field in ("price", "worth"):
            value = getattr(self, field)
            if value is not None and not (math.isfinite(value) and value > 0):
                raise FitError(f"{field} is {value:g}; give an amount of money above 0", field)
        if (self.price is None) != (self.worth is None):
            missing = "worth" if self.worth is None else "price"
            raise FitError(
                "price (of one unit of compute) and worth (of 0.01 of pass rate) go together", missing
            )

    def key(self) -> dict[str, Any]:
        """What decides the numbers, as JSON-ready data, for hashing."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "benchmark"}


def _check_name(field: str, value: str, known: Any) -> None:
    if value not in known:
        raise FitError(f"{field} '{value}' is not known; use one of: {', '.join(known)}", field)
