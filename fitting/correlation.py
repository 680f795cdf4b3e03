"""How deviations along a run are correlated, and how to make them independent cheaply.

Noise has two parts: what training does, an AR(1) process (autocorrelation rho from one evaluation to the next),
and what evaluating adds afresh each time, white, with `white` as its share of the variance. `SETTINGS` are the
combinations that are averaged over; none is assumed.

The cosine transform (DCT-II) makes AR(1) series independent to a very good approximation: it is the limit of
their Karhunen–Loève transform (Ahmed, Natarajan & Rao 1974, IEEE Trans. Comput. 23). So one transform serves
all settings, each of which is only a set of variances.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from fitting.curve import Floats


@dataclass(frozen=True)
class Settings:
    """Combinations [K] of autocorrelation and white share, with their prior probabilities."""

    rho: Floats
    white: Floats
    probability: Floats


#: Prior probability that evaluations are not correlated at all.
WHITE_NOISE = 0.2


def _settings() -> Settings:
    rhos = {0.3: 0.05, 0.5: 0.1, 0.7: 0.15, 0.85: 0.3, 0.95: 0.4}
    whites = (0.0, 0.35, 0.7)
    rows = [(0.0, 0.0, WHITE_NOISE)]
    rows += [(r, w, (1.0 - WHITE_NOISE) * p / len(whites)) for r, p in rhos.items() for w in whites]
    rho, white, probability = np.array(rows).T
    return Settings(rho, white, probability)


SETTINGS = _settings()


@lru_cache(maxsize=64)
def transform(n: int) -> Floats:
    """The orthonormal DCT-II as a matrix [n, n]: `series @ transform(n)` transforms the last axis."""
    t = np.arange(n)
    matrix = np.sqrt(2.0 / n) * np.cos(np.pi * np.outer(2 * t + 1, np.arange(n)) / (2 * n))
    matrix[:, 0] /= np.sqrt(2.0)
    matrix.setflags(write=False)
    return np.asarray(matrix)


@lru_cache(maxsize=64)
def variances(n: int) -> Floats:
    """Variance of each transformed value under each setting, for noise of sd 1, shape [K, n]."""
    lag = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    rows = []
    for rho, white in zip(SETTINGS.rho, SETTINGS.white, strict=True):
        covariance = (1.0 - white) * (np.power(rho, lag) if rho > 0 else np.eye(n)) + white * np.eye(n)
        rows.append(((covariance @ transform(n)) * transform(n)).sum(0))
    found = np.array(rows)
    found.setflags(write=False)
    return found
