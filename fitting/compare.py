"""Two recipes held against each other: which has the higher ceiling, which gets there on less compute."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fitting.batch import Problem, fit_batch
from fitting.curve import Curve, Floats
from fitting.errors import FitError
from fitting.forecast import Forecast
from fitting.gate import recipe_asymptote
from fitting.laws import LAWS
from fitting.mixture import Mixture, Pooled
from fitting.parts import Part
from fitting.report import ends, significant
from fitting.verdict import IDENTIFIED

#: The paper's margin on A (arXiv 2510.13786, A.7): three repeats of one recipe lay within ±0.015.
MARGIN = 0.02
#: Probability from which a difference is taken as seen.
CONFIDENT = 0.9
_BUDGETS = 24
_REFITS = 300
_BUDGET_FACTOR = 10.0
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
    efficiency = _efficiency(candidate, baseline, margin, level)
    target = reach if reach is not None else _common_score(candidate, baseline)
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
            "reach": _reach(candidate, baseline, target, level),
            "crossing": _crossing(candidate, baseline, level),
            "winners": _winners(candidate, baseline, prompts_sd),
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


# -- efficiency: B at a common A -------------------------------------------------------------------


def _efficiency(
    candidate: Forecast, baseline: Forecast, margin: float, level: float
) -> dict[str, Any] | None:
    """B of both with A fixed to their mean; None when A differs by more than `margin` or is not the sigmoid's."""
    sides = (candidate, baseline)
    values = [side.ensemble.outer() for side in sides]
    if any("B" not in v or "A" not in v for v in values) or any(_sigmoids(s) is None for s in sides):
        return None
    a_mean = float(np.mean([v["A"] for v in values]))
    if abs(values[0]["A"] - values[1]["A"]) > margin:
        return {"common_a": None, "reason": f"A differs by more than the margin {margin:g}: rank by A"}
    found = [_b_at(side, a_mean) for side in sides]
    (b_c, draws_c), (b_b, draws_b) = found
    ratio = np.log(draws_c) - np.log(np.resize(draws_b[::-1], len(draws_c)))
    low, high = np.exp(np.quantile(ratio, ends(level)))
    return {
        "common_a": significant(a_mean),
        "candidate_b": significant(b_c),
        "baseline_b": significant(b_b),
        "ratio": {"value": significant(b_c / b_b), "low": significant(low), "high": significant(high)},
        "p_higher": float(np.mean(ratio > 0.0)),
        "reason": None,
    }


def _sigmoids(forecast: Forecast) -> list[tuple[Part, Mixture]] | None:
    """The sigmoid of each run."""
    runs = forecast.ensemble.runs if isinstance(forecast.ensemble, Pooled) else (forecast.ensemble,)
    found = []
    for run in runs:
        assert isinstance(run, Mixture)
        part = next((p for p in run.parts if p.law.name == "sigmoid"), None)
        if part is None:
            return None
        found.append((part, run))
    return found


def _b_at(forecast: Forecast, a: float) -> tuple[float, Floats]:
    """B with A fixed to `a`: of the point fits (geometric mean over runs) and of the replicates [m].

    Each replicate's curve at the run's own compute is refitted with A fixed, so that its uncertainty carries
    over to B.
    """
    runs = _sigmoids(forecast) or []
    points, draws = [], []
    for part, _ in runs:
        ln_c = _seen(forecast.curve, forecast.used, part)
        theta = np.concatenate([part.theta[None], part.draws.theta[:_REFITS]])
        rates = np.clip(part.law.value(theta, ln_c), 0.0, 1.0)
        b = _refit(part, ln_c, rates, a)
        points.append(float(b[0]))
        draws.append(b[1:])
    return float(np.exp(np.mean(np.log(points)))), np.asarray(np.exp(np.mean(np.log(draws), axis=0)))


def _seen(curve: Curve, used: np.ndarray, part: Part) -> Floats:
    """A grid over what was seen, in the part's own unit of compute, shape [24]."""
    compute = curve.compute[used]
    positive = compute[compute > 0]
    return np.linspace(np.log(positive[0]), np.log(positive[-1]), 24) - part.ln_unit


def _refit(part: Part, ln_c: Floats, rates: Floats, a: float) -> Floats:
    """B of sigmoids with asymptote `a` fitted to curves `rates` [m, n], shape [m]."""
    law = _FixedA(a)
    low, high = LAWS["sigmoid"].bounds(ln_c)
    keep = [0, 2, 3]
    shape = (len(rates), 3)
    box = (
        np.broadcast_to(low[keep], shape),
        np.broadcast_to(np.minimum(high, [a - 1e-3, 1, np.inf, np.inf, 1])[keep], shape),
    )
    outer = LAWS["sigmoid"].outer_values(part.theta)
    start = np.array(
        [min(float(outer["R0"]), a - 2e-3), np.log(float(outer["Cmid"])), np.log(float(outer["B"]))]
    )
    theta, _ = fit_batch(Problem(law, ln_c, rates, *box), np.broadcast_to(start, shape).copy())  # type: ignore[arg-type]
    return np.exp(theta[:, 2])


class _FixedA:
    """The sigmoid with A given: parameters R0, ln Cmid, ln B."""

    def __init__(self, a: float) -> None:
        self.a = a

    def _full(self, theta: Floats) -> Floats:
        r0 = theta[..., 0]
        gain = (self.a - r0) / (1.0 - r0)
        return np.stack([r0, gain, theta[..., 1], theta[..., 2], np.zeros_like(r0)], axis=-1)

    def value(self, theta: Floats, ln_c: Floats) -> Floats:
        return LAWS["sigmoid"].value(self._full(theta), ln_c)

    def value_and_jacobian(self, theta: Floats, ln_c: Floats) -> tuple[Floats, Floats]:
        full = self._full(theta)
        value, slopes = LAWS["sigmoid"].value_and_jacobian(full, ln_c)
        # dR/dR0 at fixed A: 1 - share, where share = (R - R0) / (A - R0).
        share = (value - full[..., 0, None]) / (self.a - full[..., 0, None])
        return value, np.stack([1.0 - share, slopes[..., 2], slopes[..., 3]], axis=-1)


# -- compute ---------------------------------------------------------------------------------------


def _common_score(candidate: Forecast, baseline: Forecast) -> float:
    """The lower of both forecasts' scores at their own last point."""
    ends_seen = [s.curve.compute[s.used][-1:] for s in (candidate, baseline)]
    scores = [
        float(s.ensemble.point(np.log(e))[0]) for s, e in zip((candidate, baseline), ends_seen, strict=True)
    ]
    return min(scores)


def _reach(candidate: Forecast, baseline: Forecast, target: float, level: float) -> dict[str, Any]:
    c, b = candidate.ensemble.compute_for_draws(target), baseline.ensemble.compute_for_draws(target)
    rng = np.random.default_rng([candidate.options.seed, 21])
    b = rng.permutation(np.resize(b, len(c)))
    both = np.isfinite(c) & np.isfinite(b)
    ratio = c[both] - b[both]
    points = [s.ensemble.compute_for(target) for s in (candidate, baseline)]
    found: dict[str, Any] = {
        "pass_rate": significant(target),
        "candidate": significant(float(np.exp(points[0]))) if np.isfinite(points[0]) else None,
        "baseline": significant(float(np.exp(points[1]))) if np.isfinite(points[1]) else None,
        "ratio": None,
        "p_candidate_first": float(np.mean(c < b)),
    }
    if both.mean() > 0.5 and all(np.isfinite(points)):
        low, high = np.exp(np.quantile(ratio, ends(level)))
        value = float(np.exp(points[0] - points[1]))
        found["ratio"] = {"value": significant(value), "low": significant(low), "high": significant(high)}
    return found


def _budgets(candidate: Forecast, baseline: Forecast) -> Floats:
    """ln of compute from what both have seen to ten times the farther one."""
    seen = [s.curve.compute[s.used & (s.curve.compute > 0)] for s in (candidate, baseline)]
    start = max(float(compute[0]) for compute in seen)
    end = _BUDGET_FACTOR * max(float(compute[-1]) for compute in seen)
    return np.linspace(np.log(start), np.log(max(end, start * 1.01)), _BUDGETS)


def _gaps(candidate: Forecast, baseline: Forecast, grid: Floats) -> Floats:
    """Replicates of candidate - baseline on the grid, shape [m, g], the two sides independent."""
    ours, theirs = candidate.ensemble.curves(grid), baseline.ensemble.curves(grid)
    rng = np.random.default_rng([candidate.options.seed, 22])
    order = rng.permutation(len(theirs))
    return np.asarray(ours - np.resize(theirs[order], ours.shape))


def _winners(candidate: Forecast, baseline: Forecast, prompts_sd: float) -> list[dict[str, Any]]:
    grid = _budgets(candidate, baseline)
    gap = _gaps(candidate, baseline, grid)
    gap = gap + prompts_sd * np.random.default_rng([candidate.options.seed, 24]).standard_normal(
        (len(gap), 1)
    )
    ours, theirs = candidate.ensemble.point(grid), baseline.ensemble.point(grid)
    return [
        {
            "compute": significant(float(np.exp(x))),
            "candidate": significant(float(c)),
            "baseline": significant(float(b)),
            "p_candidate": float(p),
            "winner": _winner(float(p)),
        }
        for x, c, b, p in zip(grid, ours, theirs, (gap > 0).mean(0), strict=True)
    ]


def _winner(p: float) -> str | None:
    return "candidate" if p >= CONFIDENT else "baseline" if p <= 1.0 - CONFIDENT else None


def _crossing(candidate: Forecast, baseline: Forecast, level: float) -> dict[str, Any] | None:
    """The last compute within the budgets at which the lead changes; None when the point forecasts never cross."""
    budgets = _budgets(candidate, baseline)
    grid = np.linspace(float(budgets[0]), float(budgets[-1]), 100)
    gap = candidate.ensemble.point(grid) - baseline.ensemble.point(grid)
    at = _last_change(gap[None], grid)
    if not np.isfinite(at[0]):
        return None
    draws = _last_change(_gaps(candidate, baseline, grid), grid)
    crossed = draws[np.isfinite(draws)]
    low, high = np.exp(np.quantile(crossed, ends(level))) if len(crossed) else (np.nan, np.nan)
    return {
        "compute": significant(float(np.exp(at[0]))),
        "low": significant(float(low)),
        "high": significant(float(high)),
        "p_crosses": float(np.isfinite(draws).mean()),
        "leads_after": "candidate" if gap[-1] > 0 else "baseline",
    }


def _last_change(gaps: Floats, grid: Floats) -> Floats:
    """ln C of the last change of sign of each row [m, g], linear in between; NaN where there is none."""
    sign = gaps > 0
    changes = sign[:, 1:] != sign[:, :-1]
    last = changes.shape[1] - 1 - changes[:, ::-1].argmax(axis=1)
    rows = np.arange(len(gaps))
    before, after = gaps[rows, last], gaps[rows, last + 1]
    share = np.where(before != after, before / np.where(before != after, before - after, 1.0), 0.5)
    found = grid[last] + share * (grid[last + 1] - grid[last])
    return np.where(changes.any(axis=1), found, np.nan)


# -- the label -------------------------------------------------------------------------------------


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
