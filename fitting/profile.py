"""lmfit's own account of the sigmoid's fit: correlations, standard errors, profile-likelihood intervals.

They take the law as exact and the residuals as independent, which residuals along a run are not: for comparison
with other tools and for seeing which parameters the points cannot tell apart. The intervals to act on are the
forecast's.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from fitting.curve import Floats
from fitting.laws.base import LN_BEFORE_RL
from fitting.parts import Part
from fitting.posterior import Series

NAMES = ("A", "B", "Cmid", "R0")


def details_of(series: Series, part: Part, level: float) -> dict[str, Any] | None:
    """JSON-ready: `standard_errors`, `correlations` ("A,Cmid": r) and `profile` intervals by parameter.

    A correlation, error or interval is None where lmfit cannot say (a parameter on its bound, a profile that
    never rises). None altogether for laws other than the sigmoid.
    """
    if part.law.name != "sigmoid":
        return None
    import lmfit

    seen = series.ln_c > LN_BEFORE_RL
    inverse = np.where(seen, np.exp(-(series.ln_c - part.ln_unit)), np.inf)
    outer = part.outer()
    unit = float(np.exp(part.ln_unit))
    start = lmfit.Parameters()
    start.add("A", value=min(outer["A"], 1.0 - 1e-6), min=0.0, max=1.0)
    start.add("B", value=outer["B"], min=0.05, max=20.0)
    start.add("Cmid", value=outer["Cmid"] / unit, min=1e-6)
    start.add("R0", value=max(outer["R0"], 1e-6), min=0.0, max=1.0)

    def residual(p: Any) -> Floats:
        a, b, cmid, r0 = (p[name].value for name in NAMES)
        with np.errstate(over="ignore"):
            law = r0 + (a - r0) / (1.0 + (cmid * inverse) ** b)
        return np.asarray((series.rate - law) / series.spread)

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        minimizer = lmfit.Minimizer(residual, start)
        found = minimizer.minimize(method="leastsq")
        profile = _profile(lmfit, minimizer, found, level)
    scale = {"Cmid": unit}
    errors = {n: _finite(found.params[n].stderr, scale.get(n, 1.0)) for n in NAMES}
    return {
        "standard_errors": errors,
        "correlations": _correlations(found),
        "profile": {n: _scaled(profile.get(n), scale.get(n, 1.0)) for n in NAMES},
        "note": "lmfit's, for independent residuals and an exact law: usually too narrow",
    }


def _profile(lmfit: Any, minimizer: Any, found: Any, level: float) -> dict[str, tuple[float, float]]:
    """lmfit.conf_interval of one parameter at a time, so that one that fails leaves the others."""
    intervals = {}
    for name in NAMES:
        try:
            rows = lmfit.conf_interval(minimizer, found, p_names=[name], sigmas=[level], maxiter=60)[name]
        except Exception:  # lmfit raises many kinds when a profile never rises or an error is missing
            continue
        intervals[name] = (float(rows[0][1]), float(rows[-1][1]))
    return intervals


def _correlations(found: Any) -> dict[str, float | None]:
    pairs = [(a, b) for i, a in enumerate(NAMES) for b in NAMES[i + 1 :]]
    return {f"{a},{b}": _finite((found.params[a].correl or {}).get(b), 1.0) for a, b in pairs}


def _finite(value: float | None, scale: float) -> float | None:
    return None if value is None or not np.isfinite(value) else float(f"{value * scale:.6g}")


def _scaled(interval: tuple[float, float] | None, scale: float) -> dict[str, float | None] | None:
    if interval is None:
        return None
    low, high = (_finite(end, scale) for end in interval)
    return {"low": low, "high": high}
