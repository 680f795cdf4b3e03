"""Bootstrap bands: refits of simulated curves.

Each replicate is the fitted curve plus AR(1) noise, refitted (a parametric bootstrap: deviations along a run are
correlated, so resampling residuals one by one covers far too little). It takes the law as given and the noise
as measured, and still covers less than it says on short, correlated runs; the default bands are those of
`fitting.posterior`, which do not. A comparison of both: `tests/calibration/coverage.py`.
"""

from __future__ import annotations

import numpy as np

from fitting.batch import Problem, fit_batch
from fitting.laws.base import Floats, Law
from fitting.noise import draw_noise, estimate_noise
from fitting.posterior import Draws, Series


def bootstrap(
    law: Law,
    series: Series,
    theta: Floats,
    evaluation_sd: float | None,
    replicates: int,
    rng: np.random.Generator,
) -> Draws:
    """Replicates of the point fit `theta` [k] to the series, in the law's own unit of compute."""
    fitted = law.value(theta, series.ln_c)
    noise = estimate_noise((series.rate - fitted) / series.spread, law.n_free, evaluation_sd)
    errors, sds = draw_noise(noise, len(series), replicates, rng)
    starts = np.repeat(theta[None], replicates, 0)
    low, high = (np.broadcast_to(bound, starts.shape) for bound in law.bounds(series.ln_c))
    problem = Problem(law, series.ln_c, fitted + errors * series.spread, low, high, 1.0 / series.spread)
    found, _ = fit_batch(problem, starts)
    return Draws(found, sds, np.full(replicates, noise.autocorrelation))
