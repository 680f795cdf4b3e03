"""What runs in a forecasting process. Plain data in, plain data out.

`fitting` is imported inside the functions: a process first limits its threads, so that the same input
gives the same bytes on any machine and one forecast takes one core.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fitting import Curve, Forecast


@dataclass(frozen=True)
class CurveData:
    """The points of one run, in order of step. `n_prompts` and `n_samples` when every point has them, `score_sd`
    when every point has per-prompt counts."""

    name: str
    unit: str
    compute: tuple[float, ...]
    pass_rate: tuple[float, ...]
    n_prompts: tuple[int, ...] | None = None
    n_samples: tuple[int, ...] | None = None
    score_sd: tuple[float, ...] | None = None


@dataclass(frozen=True)
class ForecastTask:
    """A forecast to make: of one run's curve, or of all curves of a recipe (`pooled`)."""

    name: str
    curves: tuple[CurveData, ...]
    pooled: bool
    options: dict[str, Any] = field(hash=False)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> ForecastTask:
        """The task whose `dataclasses.asdict`, as JSON, is `data`."""

        def as_tuple(value: Any) -> Any:
            return tuple(value) if isinstance(value, list) else value

        curves = tuple(CurveData(**{k: as_tuple(v) for k, v in curve.items()}) for curve in data["curves"])
        options = {name: as_tuple(value) for name, value in data["options"].items()}
        return cls(data["name"], curves, data["pooled"], options)


@dataclass(frozen=True)
class GateTask:
    candidate: ForecastTask
    baseline: ForecastTask | float
    margin: float
    confidence: float


@dataclass(frozen=True)
class ComparisonTask:
    candidate: ForecastTask
    baseline: ForecastTask
    margin: float
    reach: float | None
    same_prompts: bool


@dataclass(frozen=True)
class Refused:
    """The points or options cannot be used: the field and a line for the user.

    Data and not an exception, because exceptions do not always survive the way between processes.
    """

    field: str
    message: str


def prepare() -> None:
    """Runs first in each forecasting process."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the service, which then ends the pool
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A killed service cannot end its pool; then its processes end themselves."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def make_forecast(task: ForecastTask) -> dict[str, Any] | Refused:
    from fitting import FitError

    try:
        return _forecast(task).to_dict()
    except FitError as error:
        return Refused(error.field, str(error))


def make_quantiles(task: ForecastTask) -> dict[str, Any] | Refused:
    """`{"quantiles"}`: for each asked compute the quantiles at `scores.PROBABILITIES`, ascending.

    They are the ends of the forecast's intervals at several levels; null where one has no finite end.
    """
    from api.registry.scores import LEVELS
    from fitting import FitError

    try:
        answers = [
            _forecast(replace(task, options={**task.options, "level": level})).to_dict() for level in LEVELS
        ]
    except FitError as error:
        return Refused(error.field, str(error))
    n_targets = len(answers[0]["at"])
    ends = [[(a["at"][i]["low"], a["at"][i]["high"]) for a in answers] for i in range(n_targets)]
    return {"quantiles": [_sorted_or_none(target) for target in ends]}


def _sorted_or_none(intervals: list[tuple[float | None, float | None]]) -> list[float] | None:
    ends = [end for interval in intervals for end in interval if end is not None]
    return sorted(ends) if len(ends) == 2 * len(intervals) else None


def decide_gate(task: GateTask) -> dict[str, Any] | Refused:
    """`{"decision", "candidate_forecast", "baseline_forecast"}`, the last null for a plain number."""
    from fitting import FitError, gate_decision

    try:
        candidate = _forecast(task.candidate)
        baseline = _forecast(task.baseline) if isinstance(task.baseline, ForecastTask) else task.baseline
        decision = gate_decision(candidate, baseline, task.margin, task.confidence)
    except FitError as error:
        return Refused(error.field, str(error))
    return {
        "decision": decision.to_dict(),
        "candidate_forecast": candidate.to_dict(),
        "baseline_forecast": None if isinstance(baseline, float) else baseline.to_dict(),
    }


def make_comparison(task: ComparisonTask) -> dict[str, Any] | Refused:
    """`Comparison.to_dict()`."""
    from fitting import FitError, compare

    try:
        sides = _forecast(task.candidate), _forecast(task.baseline)
        found = compare(*sides, margin=task.margin, reach=task.reach, same_prompts=task.same_prompts)
    except FitError as error:
        return Refused(error.field, str(error))
    return found.to_dict()


def _forecast(task: ForecastTask) -> Forecast:
    from fitting import ForecastOptions, forecast, forecast_recipe

    options = ForecastOptions(**task.options)
    curves = [_curve(curve) for curve in task.curves]
    return forecast_recipe(curves, options, task.name) if task.pooled else forecast(curves[0], options)


def _curve(data: CurveData) -> Curve:
    import numpy as np

    from fitting import Curve

    counts = (None if c is None else np.array(c, dtype=np.int64) for c in (data.n_prompts, data.n_samples))
    n_prompts, n_samples = counts
    return Curve(
        np.array(data.compute),
        np.array(data.pass_rate),
        data.unit,
        data.name,
        n_prompts=n_prompts,
        n_samples=n_samples,
        score_sd=None if data.score_sd is None else np.array(data.score_sd),
    )
