"""What more compute is worth: the gain a unit buys, and from where it no longer pays."""

from __future__ import annotations

from typing import Any

import numpy as np

from fitting.curve import Floats
from fitting.mixture import Ensemble
from fitting.options import ForecastOptions

#: The next tenth of the compute counts as diminishing return when it gains less than this.
SHARE, SMALL_GAIN = 0.1, 0.002
_GRID = 100
_FAR = np.log(1e3)


def value_of(ensemble: Ensemble, options: ForecastOptions, compute: Floats) -> dict[str, Any]:
    """JSON-ready. `compute` [n]: the positive compute of the points that were fitted.

    - `next_tenth`: the gain in pass rate from 10% more compute than the last point's, with its interval;
    - `gain_per_unit`: the slope of the forecast at the last point, in pass rate per unit of compute;
    - `diminishing_from`: the compute from which 10% more gains less than `SMALL_GAIN`; None if not within a
      thousand times what was seen;
    - `pays_until` (with `price` and `worth`): the compute from which one more unit costs more than what it gains
      is worth.
    """
    last = float(compute[-1])
    levels = (1.0 - options.level) / 2.0, (1.0 + options.level) / 2.0
    ends = np.log([last, last * (1.0 + SHARE)])
    point, curves = ensemble.point(ends), ensemble.curves(ends)
    low, high = np.quantile(curves[:, 1] - curves[:, 0], levels)
    grid = np.linspace(np.log(last), np.log(last) + _FAR, _GRID)
    found: dict[str, Any] = {
        "next_tenth": {"gain": _rounded(point[1] - point[0]), "low": _rounded(low), "high": _rounded(high)},
        "gain_per_unit": _rounded(_slope(ensemble, grid[:2])[0]),
        "diminishing_from": _interval(_diminishing(ensemble, grid), levels),
        "diminishing_means": {"share": SHARE, "gain_below": SMALL_GAIN},
        "pays_until": None,
    }
    if options.price is not None and options.worth is not None:
        found["pays_until"] = _interval(
            _pays(ensemble, grid, options.price / (options.worth * 100.0)), levels
        )
    return found


def _slope(ensemble: Ensemble, ln_c: Floats) -> Floats:
    """dR/dC of the point forecast between neighbours of the grid, at the lower one."""
    compute = np.exp(ln_c)
    return np.asarray(np.diff(ensemble.point(ln_c)) / np.diff(compute))


def _diminishing(ensemble: Ensemble, grid: Floats) -> tuple[float, Floats]:
    """Compute of the first grid node from which 10% more gains less than `SMALL_GAIN`: of the point forecast and
    of every replicate."""
    beyond = grid + np.log(1.0 + SHARE)
    point = ensemble.point(beyond) - ensemble.point(grid)
    gains = ensemble.curves(beyond) - ensemble.curves(grid)
    return float(_first(point[None] < SMALL_GAIN, grid)[0]), _first(gains < SMALL_GAIN, grid)


def _pays(ensemble: Ensemble, grid: Floats, least: float) -> tuple[float, Floats]:
    """Compute from which a unit gains less than `least` pass rate."""
    width = np.diff(np.exp(grid))
    point = np.diff(ensemble.point(grid)) / width
    curves = np.diff(ensemble.curves(grid), axis=1) / width
    return float(_first(point[None] < least, grid)[0]), _first(curves < least, grid)


def _first(holds: np.ndarray, grid: Floats) -> Floats:
    """Compute at the first node where it holds from there on, shape [m]; +inf where it never does."""
    broken = ~holds[:, ::-1]
    run = np.where(broken.any(axis=1), broken.argmax(axis=1), holds.shape[1])  # nodes from the end on
    at = holds.shape[1] - run
    compute = np.append(np.exp(grid), np.inf)
    return np.asarray(np.where(run > 0, compute[np.minimum(at, len(grid))], np.inf))


def _interval(found: tuple[float, Floats], levels: tuple[float, float]) -> dict[str, float | None]:
    value, draws = found
    low, high = np.quantile(draws, levels, method="inverted_cdf")
    return {"compute": _rounded(value), "low": _rounded(low), "high": _rounded(high)}


def _rounded(value: float) -> float | None:
    return float(f"{value:.10g}") if np.isfinite(value) else None
