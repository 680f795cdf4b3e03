"""How much each law counts: weights by how well it has forecast this very run so far.

Rolling origin: at several points of the window each law is fitted to what was seen until then and forecasts the
rest of the window. The weights are those of the mixture with the best predictive score (stacking: Yao, Vehtari,
Simpson & Gelman 2018, Bayesian Analysis 13), with `PRIOR` as so many points of evidence beforehand, so that
short windows, which cannot tell laws apart, stay a spread-out mixture.
"""

from __future__ import annotations

import numpy as np

from fitting.curve import Floats
from fitting.laws import LAWS
from fitting.laws.base import LN_BEFORE_RL
from fitting.parts import draw_part
from fitting.posterior import Series

#: Laws that `auto` combines, and the prior evidence for each in points.
PRIOR: dict[str, float] = {
    "sigmoid": 3.0,
    "power": 3.0,
    "log-linear": 1.5,
    "saturating-power": 3.0,
    "exponential": 0.75,
    "last-value": 0.75,
}
#: Held-out scores of one origin share its error: together they count as so many points.
EVIDENCE = 3.0
#: A law whose likelihood at the points lies by more than a factor of exp(-this) below the best law's is ruled
#: out, the more so the farther: a law that the points contradict must not linger as prior weight.
RULED_OUT = 6.0
ORIGINS = (0.3, 0.45, 0.6, 0.75)
MIN_SEEN = 5
_REPLICATES = 300
_SCORED = 12
_STEPS = 60
_NEGLIGIBLE = 1e-3


def weights(series: Series, ln_likelihoods: dict[str, float | None], seed: int) -> dict[str, float]:
    """The weight of each law of `PRIOR`, summing to 1.

    `ln_likelihoods`: of each law fitted to the whole window, None where it has none.
    """
    ln_density, evidence = _predictive(series, seed)
    prior = np.array(list(PRIOR.values()))
    weight = prior / prior.sum()
    if len(evidence):
        density = np.exp(ln_density - ln_density.max(1, keepdims=True))
        for _ in range(_STEPS):
            mixed = weight * density
            counted = (evidence[:, None] * mixed / mixed.sum(1, keepdims=True)).sum(0) + prior
            weight = counted / counted.sum()
    weight = weight * np.array([_standing(ln_likelihoods, name) for name in PRIOR])
    weight = np.where(weight < _NEGLIGIBLE * weight.max(), 0.0, weight)
    return dict(zip(PRIOR, (weight / weight.sum()).tolist(), strict=True))


def _standing(ln_likelihoods: dict[str, float | None], name: str) -> float:
    best = max(value for value in ln_likelihoods.values() if value is not None)
    own = ln_likelihoods[name]
    return 1.0 if own is None else float(np.exp(min(0.0, own - best + RULED_OUT)))


def origins(series: Series) -> list[int]:
    """How many points each origin has seen."""
    n = len(series)
    found = sorted({max(round(share * n), MIN_SEEN) for share in ORIGINS})
    return [k for k in found if k <= n - 2 and (series.ln_c[:k] > LN_BEFORE_RL).sum() >= MIN_SEEN - 1]


def _predictive(series: Series, seed: int) -> tuple[Floats, Floats]:
    """ln of each law's predictive density at held-out points [points, laws], and for how many independent
    points each counts [points]."""
    rows: list[Floats] = [np.empty((0, len(PRIOR)))]
    evidence: list[Floats] = [np.empty(0)]
    for origin in origins(series):
        ahead = np.unique(
            np.linspace(origin, len(series) - 1, min(_SCORED, len(series) - origin)).astype(int)
        )
        columns = [
            _ln_density(name, series, origin, ahead, np.random.default_rng([seed, origin, at]))
            for at, name in enumerate(PRIOR)
        ]
        rows.append(np.stack(columns, axis=-1))
        evidence.append(np.full(len(ahead), min(len(ahead), EVIDENCE) / len(ahead)))
    return np.concatenate(rows), np.concatenate(evidence)


def _ln_density(
    name: str, series: Series, origin: int, ahead: np.ndarray, rng: np.random.Generator
) -> Floats:
    """ln of the law's predictive density at the points `ahead`, from those before `origin`."""
    seen = Series(series.ln_c[:origin], series.rate[:origin], series.spread[:origin])
    part = draw_part(LAWS[name], seen, None, None, _REPLICATES, rng)
    curves = part.replicates(series.ln_c[ahead])
    sd = part.draws.sd[:, None] * series.spread[ahead]
    ln_each = -0.5 * ((series.rate[ahead] - curves) / sd) ** 2 - np.log(sd)
    top = ln_each.max(0)
    return np.asarray(top + np.log(np.exp(ln_each - top).mean(0)))
