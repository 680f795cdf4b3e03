"""How good forecasts have been: rolling origin over any set of curves.

Each curve is cut after a fraction of its evaluations, what was seen is forecast to the end, and the forecast is
held against what happened: the mean of the last points, at their compute. Every law is scored beside `auto`,
and the null beside all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fitting.curve import Curve
from fitting.errors import FitError
from fitting.forecast import forecast
from fitting.laws import LAWS
from fitting.options import AUTO, ForecastOptions
from fitting.report import score_draws, significant

FRACTIONS = (0.1, 0.25, 0.5)
METHODS = (AUTO, *LAWS)
#: The target is the mean of the last tenth of the points, 10 at most: a single evaluation is a noisy goal.
_TARGET_SHARE, _TARGET_MOST = 0.1, 10


@dataclass(frozen=True)
class Score:
    """One forecast of one curve's end.

    `seen`: fraction of evaluations, `n_seen` how many; `error`: forecast - happened; `crps` and
    `interval_score` as in Gneiting & Raftery 2007 (JASA 102), in pass rate; `width` and `inside` of the interval
    at `level`.
    """

    curve: str
    unit: str
    method: str
    seen: float
    n_seen: int
    forecast: float
    happened: float
    low: float
    high: float
    crps: float
    interval_score: float
    level: float

    @property
    def error(self) -> float:
        return self.forecast - self.happened

    @property
    def width(self) -> float:
        return self.high - self.low

    @property
    def inside(self) -> bool:
        return self.low <= self.happened <= self.high


@dataclass(frozen=True)
class Backtest:
    """All scores, and the cuts that could not be forecast, each with the reason."""

    scores: tuple[Score, ...]
    skipped: tuple[tuple[str, float, str], ...]

    def summary(self) -> list[dict[str, Any]]:
        """One row a fraction and method: mean absolute error, bias, coverage, width, interval score and CRPS."""
        rows = []
        for seen in dict.fromkeys(s.seen for s in self.scores):
            for method in dict.fromkeys(s.method for s in self.scores):
                group = [s for s in self.scores if s.seen == seen and s.method == method]
                if group:
                    rows.append(_row(seen, method, group))
        return rows

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready: summary, every score, and what was skipped."""
        return {
            "summary": self.summary(),
            "scores": [_score_dict(score) for score in self.scores],
            "skipped": [{"run": run, "seen": seen, "reason": reason} for run, seen, reason in self.skipped],
        }


def backtest(
    curves: Sequence[Curve],
    fractions: Iterable[float] = FRACTIONS,
    methods: Iterable[str] = METHODS,
    options: ForecastOptions | None = None,
    progress: Callable[[str], None] | None = None,
) -> Backtest:
    """Scores forecasts of every curve's end from the first `fractions` of its evaluations.

    `options`: level, seed, replicates and so on; its law and `at` are set here. `progress` is called with each
    curve's name. Curves too short for a fraction are listed in `skipped`.

    Raises `FitError` for no curves or a fraction outside of 0 to 1.
    """
    options = options or ForecastOptions()
    fractions, methods = tuple(fractions), tuple(methods)
    if not curves:
        raise FitError("no curves to test on", "curves")
    if any(not 0 < fraction < 1 for fraction in fractions):
        raise FitError("a fraction seen must lie between 0 and 1, such as 0.25", "fractions")
    scores: list[Score] = []
    skipped: list[tuple[str, float, str]] = []
    for curve in curves:
        if progress:
            progress(curve.name)
        for fraction in fractions:
            try:
                scores += [_score(curve, fraction, method, options) for method in methods]
            except FitError as error:
                skipped.append((curve.name, fraction, str(error)))
    return Backtest(tuple(scores), tuple(skipped))


def _score(curve: Curve, fraction: float, method: str, options: ForecastOptions) -> Score:
    import scoringrules

    n_seen = round(fraction * len(curve))
    n_target = max(1, min(_TARGET_MOST, round(_TARGET_SHARE * len(curve))))
    if n_seen > len(curve) - n_target:
        raise FitError("the end is already seen", "fractions")
    seen = _first(curve, n_seen)
    happened = float(curve.pass_rate[-n_target:].mean())
    # The centre of the target's points on the axis that the curve is smooth on.
    at = float(np.exp(np.log(curve.compute[-n_target:]).mean()))
    found = forecast(seen, replace(options, law=method, at=(at,)))
    answer = found.to_dict()["at"][0]
    draws = score_draws(found, np.array([at]))[:, 0]
    alpha = 1.0 - options.level
    return Score(
        curve=curve.name,
        unit=curve.unit,
        method=method,
        seen=fraction,
        n_seen=n_seen,
        forecast=answer["value"],
        happened=happened,
        low=answer["low"],
        high=answer["high"],
        crps=float(scoringrules.crps_ensemble(happened, draws)),
        interval_score=float(scoringrules.interval_score(happened, answer["low"], answer["high"], alpha)),
        level=options.level,
    )


def _first(curve: Curve, n: int) -> Curve:
    def cut(values: Any) -> Any:
        return None if values is None else values[:n]

    counts = {name: cut(getattr(curve, name)) for name in ("n_prompts", "n_samples", "score_sd")}
    return Curve(curve.compute[:n], curve.pass_rate[:n], curve.unit, curve.name, **counts)


def _row(seen: float, method: str, group: list[Score]) -> dict[str, Any]:
    def mean(values: Iterable[float]) -> float | None:
        return significant(float(np.mean(list(values))))

    return {
        "seen": seen,
        "method": method,
        "n": len(group),
        "mean_absolute_error": mean(abs(s.error) for s in group),
        "bias": mean(s.error for s in group),
        "coverage": mean(s.inside for s in group),
        "level": group[0].level,
        "width": mean(s.width for s in group),
        "interval_score": mean(s.interval_score for s in group),
        "crps": mean(s.crps for s in group),
    }


def _score_dict(score: Score) -> dict[str, Any]:
    numbers = ("forecast", "happened", "error", "low", "high", "width", "crps", "interval_score")
    return {
        "run": score.curve,
        "unit": score.unit,
        "method": score.method,
        "seen": score.seen,
        "n_seen": score.n_seen,
        **{name: significant(getattr(score, name)) for name in numbers},
        "inside": score.inside,
    }
