"""Who gets where on how much compute, and where the lead changes."""

from __future__ import annotations

from typing import Any

import numpy as np

from fitting.curve import Floats
from fitting.forecast import Forecast
from fitting.report import ends, significant

#: Probability from which a difference is taken as seen.
CONFIDENT = 0.9
_BUDGETS = 24
_BUDGET_FACTOR = 10.0


def common_score(candidate: Forecast, baseline: Forecast) -> float:
    """The lower of both forecasts' scores at their own last point."""
    ends_seen = [s.curve.compute[s.used][-1:] for s in (candidate, baseline)]
    scores = [
        float(s.ensemble.point(np.log(e))[0]) for s, e in zip((candidate, baseline), ends_seen, strict=True)
    ]
    return min(scores)


def reach_of(candidate: Forecast, baseline: Forecast, target: float, level: float) -> dict[str, Any]:
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


def winners_of(candidate: Forecast, baseline: Forecast, prompts_sd: float) -> list[dict[str, Any]]:
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


def crossing_of(candidate: Forecast, baseline: Forecast, level: float) -> dict[str, Any] | None:
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
