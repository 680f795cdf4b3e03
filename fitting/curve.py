"""One curve: pass rates over compute, checked and sorted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fitting.errors import FitError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Curve:
    """Evaluations of one run.

    Args:
        compute: training compute of each evaluation, in `unit`, shape [n]; 0 means before RL.
        pass_rate: mean pass rate in [0, 1], shape [n].
        unit: unit of compute; curves in different units are never fitted or compared together.
        name: what the run is called.
        n_prompts, n_samples: prompts and samples per prompt of each evaluation, shape [n], where known.
        score_sd: standard error of each pass rate from sampling, shape [n], where per-prompt counts are known
            (`sampling_sd`): sharper than what prompts and samples alone say.

    Points are sorted by compute; several evaluations at one compute stay separate points.
    Raises `FitError` for values that cannot be right.
    """

    compute: Floats
    pass_rate: Floats
    unit: str = "gpu_hours"
    name: str = "curve"
    n_prompts: Ints | None = None
    n_samples: Ints | None = None
    score_sd: Floats | None = None

    def __post_init__(self) -> None:
        compute = np.asarray(self.compute, dtype=np.float64).ravel()
        rate = np.asarray(self.pass_rate, dtype=np.float64).ravel()
        _check(compute, rate)
        order = np.argsort(compute, kind="stable")
        object.__setattr__(self, "compute", compute[order])
        object.__setattr__(self, "pass_rate", rate[order])
        for field in ("n_prompts", "n_samples"):
            given = getattr(self, field)
            if given is None:
                continue
            counts = np.asarray(given, dtype=np.int64).ravel()
            if counts.shape != compute.shape or (counts < 1).any():
                raise FitError(f"{field} must be one whole number above 0 for each point", field)
            object.__setattr__(self, field, counts[order])
        if self.score_sd is not None:
            errors = np.asarray(self.score_sd, dtype=np.float64).ravel()
            if errors.shape != compute.shape or not np.isfinite(errors).all() or (errors < 0).any():
                raise FitError("score_sd must be one number from 0 for each point", "score_sd")
            object.__setattr__(self, "score_sd", errors[order])

    def __len__(self) -> int:
        return len(self.compute)


def _check(compute: Floats, rate: Floats) -> None:
    if compute.shape != rate.shape:
        raise FitError(
            f"compute has {len(compute)} values and pass_rate {len(rate)}; give one of each a point", "points"
        )
    if not np.isfinite(compute).all():
        raise FitError("compute has NaN or infinite values; correct or drop those points", "compute")
    if (compute < 0).any():
        raise FitError("compute cannot be negative; correct or drop those points", "compute")
    if not np.isfinite(rate).all():
        raise FitError("pass_rate has NaN or infinite values; correct or drop those points", "pass_rate")
    if (rate < 0).any() or (rate > 1).any():
        raise FitError("pass_rate must be a fraction from 0 to 1; divide percent by 100", "pass_rate")
