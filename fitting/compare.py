"""Two recipes held against each other: which has the higher ceiling, which gets there on less compute."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fitting.efficiency import efficiency_of
from fitting.errors import FitError
from fitting.forecast import Forecast
from fitting.gate import recipe_asymptote
from fitting.leads import CONFIDENT, common_score, crossing_of, reach_of, winners_of
from fitting.report import ends, significant
from fitting.verdict import IDENTIFIED

#: The paper's margin on A (arXiv 2510.13786, A.7): three repeats of one recipe lay within ±0.015.
MARGIN = 0.02
CEILING, EFFICIENCY, BOTH, NEITHER = "ceiling mover", "efficiency shaper", "both", "neither"


@dataclass(frozen=True)
class Comparison:
    """`to_dict()` is the public form; a candidate is compared with a baseline."""

    content: dict[str, Any]

    @property
    def label(self) -> str:
        return str(self.content["label"]["name"])

    def to_dict(self) -> dict[str, Any]:
        return dict(self.content)


def compare(
    candidate: Forecast,
    baseline: Forecast,
    margin: float = MARGIN,
    reach: float | None = None,
    same_prompts: bool = True,
) -> Comparison:
    """Compares two forecasts of runs or recipes in one unit of compute.

    - `difference` of A, candidate - baseline, with interval and `p_higher`; what repeats of a recipe differ by
      is part of it. None of laws without an asymptote.
    - `efficiency`: when A differs by less than `margin`, both are fitted again with A fixed to the mean, and B is
      compared (the paper's rule, A.7): `b` of each, and the probability that the candidate's is higher.
    - `reach`: compute of each to reach a score (default: the highest that both have been measured at), and the
      ratio candidate / baseline with its interval.
    - `crossing`: compute from which the other one leads, with its interval; None when one leads throughout.
    - `winners`: at budgets from the compute that both have seen to ten times the farther one, the scores and the
      probability that the candidate leads.
    - `label`: ceiling mover, efficiency shaper, both or neither, with its evidence, or undecided.

    `same_prompts`: both were scored on the same prompts (the default), so that which prompts were drawn moves both
    curves alike and cancels in the comparison. Otherwise each side's prompt-sampling error, at most
    p (1 - p) / prompts, is part of every difference; the numbers of prompts must then be known.

    Raises `FitError` for different units, and for different prompts whose numbers are not known.
    """
    if candidate.curve.unit != baseline.curve.unit:
        raise FitError(
            f"candidate in {candidate.curve.unit}, baseline in {baseline.curve.unit}: compare curves in one unit",
            "unit",
        )
    if not 0 <= margin < 1:
        raise FitError(f"margin is {margin:g}; give a pass-rate difference from 0 to 1", "margin")
    level = candidate.options.level
    prompts_sd = 0.0 if same_prompts else float(np.hypot(_prompts_sd(candidate), _prompts_sd(baseline)))
    difference = _difference(candidate, baseline, margin, level, prompts_sd)
    efficiency = efficiency_of(candidate, baseline, margin, level)
    target = reach if reach is not None else common_score(candidate, baseline)
    return Comparison(
        {
            "candidate": _side(candidate),
            "baseline": _side(baseline),
            "unit": candidate.curve.unit,
            "margin": margin,
            "level": level,
            "same_prompts": same_prompts,
            "difference": difference,
            "efficiency": efficiency,
            "reach": reach_of(candidate, baseline, target, level),
            "crossing": crossing_of(candidate, baseline, level),
            "winners": winners_of(candidate, baseline, prompts_sd),
            "label": _label(candidate, baseline, difference, efficiency),
        }
    )


def _side(forecast: Forecast) -> dict[str, Any]:
    found = forecast.to_dict()
    return {
        "name": forecast.name,
        "parameters": found["parameters"],
        "verdict": found["verdict"],
        "observed_to": found["grid"]["observed_to"],
    }


def _prompts_sd(forecast: Forecast) -> float:
    """Standard error of the curve's level from the choice of prompts: sqrt(p (1 - p) / prompts), the bound for
    prompts that are either always or never solved."""
    counts = forecast.curve.n_prompts
    if counts is None:
        raise FitError(
            f"{forecast.name}: the number of prompts is not known; needed for different prompts", "n_prompts"
        )
    rate = float(forecast.curve.pass_rate[-1])
    return float(np.sqrt(rate * (1.0 - rate) / counts[-1]))


def _difference(
    candidate: Forecast, baseline: Forecast, margin: float, level: float, prompts_sd: float
) -> dict[str, Any] | None:
    if candidate.asymptote is None or baseline.asymptote is None:
        return None
    a, b = recipe_asymptote(candidate, 11), recipe_asymptote(baseline, 12)
    draws = a - np.resize(b, len(a))
    draws = draws + prompts_sd * np.random.default_rng([candidate.options.seed, 23]).standard_normal(
        len(draws)
    )
    low, high = np.quantile(draws, ends(level))
    middle = candidate.ensemble.outer()["A"] - baseline.ensemble.outer()["A"]
    return {
        "value": significant(middle),
        "low": significant(low),
        "high": significant(high),
        "p_higher": float(np.mean(draws > 0.0)),
        "p_higher_by_margin": float(np.mean(draws > margin)),
        "p_lower_by_margin": float(np.mean(draws < -margin)),
        "p_within_margin": float(np.mean(np.abs(draws) <= margin)),
    }


def _label(
    candidate: Forecast,
    baseline: Forecast,
    difference: dict[str, Any] | None,
    efficiency: dict[str, Any] | None,
) -> dict[str, Any]:
    """What the change does: moves the ceiling, shapes how fast it is reached, both, or neither; `name` is None
    while the points do not decide, with the reason."""
    if difference is None:
        return {"name": None, "evidence": ["a law without an asymptote cannot tell ceiling from efficiency"]}
    unknown = [s.name for s in (candidate, baseline) if s.verdict.state != IDENTIFIED]
    if unknown:
        return {"name": None, "evidence": [f"A is not identified of {' and '.join(unknown)}"]}
    moves, evidence = _moves_ceiling(difference)
    shapes, more = _shapes_efficiency(candidate, baseline, efficiency)
    if moves is None:
        return {"name": None, "evidence": [*evidence, *more]}
    name = {(True, True): BOTH, (True, False): CEILING, (False, True): EFFICIENCY, (False, False): NEITHER}
    return {"name": name[(moves, shapes)], "evidence": [*evidence, *more]}


def _moves_ceiling(difference: dict[str, Any]) -> tuple[bool | None, list[str]]:
    inside, value = difference["p_within_margin"], difference["value"]
    beyond = max(difference["p_higher_by_margin"], difference["p_lower_by_margin"])
    if beyond >= CONFIDENT:
        return True, [f"A differs by {value:+.3f}: beyond the margin with probability {beyond:.2f}"]
    if inside >= 0.5:
        return False, [f"A differs by {value:+.3f}: within the margin with probability {inside:.2f}"]
    return None, [f"A differs by {value:+.3f}, but on which side of the margin is not decided"]


def _shapes_efficiency(
    candidate: Forecast, baseline: Forecast, efficiency: dict[str, Any] | None
) -> tuple[bool, list[str]]:
    """By B at a common A where the ceilings agree, else by Cmid: the compute at which half of the gain is made."""
    if efficiency and efficiency["common_a"] is not None:
        p, ratio = efficiency["p_higher"], efficiency["ratio"]["value"]
        seen = max(p, 1.0 - p) >= CONFIDENT
        word = "differs" if seen else "does not clearly differ"
        return seen, [f"B at a common A {word}: ratio {ratio:.2f}, higher with probability {p:.2f}"]
    draws = [s.ensemble.outer_draws().get("Cmid") for s in (candidate, baseline)]
    if draws[0] is None or draws[1] is None:
        return False, []
    p = float(np.mean(draws[0] < np.resize(draws[1][::-1], len(draws[0]))))
    seen = max(p, 1.0 - p) >= CONFIDENT
    word = "differs" if seen else "does not clearly differ"
    return seen, [f"Cmid {word}: the candidate's is lower with probability {p:.2f}"]
