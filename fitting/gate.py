"""The decision that rejects a recipe whose predicted asymptote falls below a baseline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fitting.curve import Floats
from fitting.errors import FitError
from fitting.forecast import Forecast
from fitting.report import ends, significant
from fitting.verdict import IDENTIFIED, LOWER_BOUND

PASS, FAIL, INCONCLUSIVE = "pass", "fail", "inconclusive"


@dataclass(frozen=True)
class GateDecision:
    """`verdict` with its evidence; `to_dict()` is the public form."""

    verdict: str
    candidate: dict[str, Any]
    baseline: dict[str, Any]
    difference: dict[str, float | None]
    margin: float
    confidence: float
    p_below: float
    reasons: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        return {
            "verdict": self.verdict,
            "metric": "A",
            "candidate": self.candidate,
            "baseline": self.baseline,
            "difference": self.difference,
            "margin": self.margin,
            "confidence": self.confidence,
            "p_below": self.p_below,
            "reasons": list(self.reasons),
        }


def gate_decision(
    candidate: Forecast, baseline: Forecast | float, margin: float = 0.02, confidence: float = 0.95
) -> GateDecision:
    """Decides whether the candidate's A falls below the baseline's by more than `margin`.

    A recipe is judged, not a run: what repeats of a recipe differ by (`seed_sd` for a side with one run)
    is part of the uncertainty. Fails when P(A_candidate < A_baseline - margin) >= `confidence` and both are
    identified; passes when 1 - P >= `confidence` and both are identified, or the candidate has a lower bound
    that alone decides against an identified or given baseline. Everything else is inconclusive.
    `difference` has an interval at the candidate's level.

    Raises `FitError` for different units or values out of range.
    """
    _check(candidate, baseline, margin, confidence)
    a = recipe_asymptote(candidate, 11)
    b = float(baseline) if not isinstance(baseline, Forecast) else recipe_asymptote(baseline, 12)
    if isinstance(b, np.ndarray) and len(a) != len(b):
        b = np.resize(b, len(a))
    difference = a - b
    p_below = float(np.mean(difference < -margin))
    verdict, reasons = _decide(candidate, baseline, p_below, confidence)
    low, high = np.quantile(difference, ends(candidate.options.level))
    middle = _point(candidate) - (float(baseline) if not isinstance(baseline, Forecast) else _point(baseline))
    return GateDecision(
        verdict=verdict,
        candidate=_side(candidate),
        baseline=_side(baseline),
        difference={"value": significant(middle), "low": significant(low), "high": significant(high)},
        margin=margin,
        confidence=confidence,
        p_below=p_below,
        reasons=reasons,
    )


def _check(candidate: Forecast, baseline: Forecast | float, margin: float, confidence: float) -> None:
    if not 0 <= margin < 1:
        raise FitError(f"margin is {margin:g}; give a pass-rate difference from 0 to 1", "margin")
    if not 0.5 < confidence < 1:
        raise FitError(
            f"confidence is {confidence:g}; give a probability above 0.5 and below 1", "confidence"
        )
    if isinstance(baseline, Forecast):
        if baseline.curve.unit != candidate.curve.unit:
            raise FitError(
                f"candidate in {candidate.curve.unit}, baseline in {baseline.curve.unit}: "
                "compare curves in one unit",
                "unit",
            )
    elif not 0 <= baseline <= 1:
        raise FitError(f"baseline is {baseline:g}; an A is a pass rate from 0 to 1", "baseline")


def recipe_asymptote(forecast: Forecast, salt: int) -> Floats:
    """Replicates of the recipe's A, in a random order so that two sides with one seed stay independent.

    The forecast of a single run gets what repeats of its recipe would differ by (`seed_sd`).
    """
    draws = forecast.asymptote
    if draws is None:
        raise FitError(f"law '{forecast.options.law}' has no asymptote; use law auto or sigmoid", "law")
    rng = np.random.default_rng([forecast.options.seed, salt])
    draws = rng.permutation(draws)
    if forecast.run_sd == 0.0:
        draws = draws + rng.standard_normal(len(draws)) * forecast.options.seed_sd
    return np.asarray(draws)


def _decide(
    candidate: Forecast, baseline: Forecast | float, p_below: float, confidence: float
) -> tuple[str, tuple[str, ...]]:
    sides = [candidate, baseline] if isinstance(baseline, Forecast) else [candidate]
    unsure = [f for f in sides if f.verdict.state != IDENTIFIED]
    reasons = tuple(
        f"{f.name}: A is {f.verdict.state.replace('_', ' ')} ({f.verdict.reasons[0]})" for f in unsure
    )
    below = f"P(A is more than the margin below the baseline) = {p_below:.3f}"
    baseline_known = not isinstance(baseline, Forecast) or baseline.verdict.state == IDENTIFIED
    if not unsure:
        if p_below >= confidence:
            return FAIL, (below,)
        if 1.0 - p_below >= confidence:
            return PASS, (below,)
        return INCONCLUSIVE, (f"{below}: neither above {confidence:g} nor below {1 - confidence:.2g}",)
    bounded_below = candidate.verdict.state in (IDENTIFIED, LOWER_BOUND)
    if baseline_known and bounded_below and 1.0 - p_below >= confidence:
        return PASS, ("the candidate's lower bound alone is above what the baseline asks", *reasons)
    return INCONCLUSIVE, reasons


def _point(forecast: Forecast) -> float:
    return forecast.ensemble.outer()["A"]


def _side(side: Forecast | float) -> dict[str, Any]:
    if not isinstance(side, Forecast):
        value = float(side)
        return {"value": value, "low": value, "high": value, "state": "given"}
    return {**side.to_dict()["parameters"]["A"], "state": side.verdict.state}
