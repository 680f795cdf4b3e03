"""How noisy a run is: size and autocorrelation of its deviations from the law."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fitting.curve import Floats, Ints

#: What is assumed before residuals are seen, and with the weight of how many independent residuals: a fit of
#: four parameters to a dozen points absorbs most of correlated noise, so that what is left looks small and
#: white. The published ScaleRL 8B run (1,000 prompts, 16 samples each), fitted as a whole, has residuals of
#: 0.0042 with a lag-1 autocorrelation of 0.45.
PRIOR_SD = 0.005
PRIOR_DOF = 4.0
PRIOR_AUTOCORRELATION = 0.5
PRIOR_POINTS = 10.0
MAX_AUTOCORRELATION = 0.9


@dataclass(frozen=True)
class Noise:
    """AR(1) noise: stationary standard deviation, lag-1 autocorrelation, and degrees of freedom of the sd."""

    sd: float
    autocorrelation: float
    dof: float


def estimate_noise(residuals: Floats, n_parameters: int, evaluation_sd: float | None) -> Noise:
    """Noise from the residuals [n] of a fit, in order of compute.

    The lag-1 autocorrelation is corrected for the bias of short series, E[r] - rho ~ -(1 + 3 rho) / n
    (Marriott & Pope 1954, Biometrika 41), and for what fitting the parameters takes out, about one more
    (1 + rho) / n per parameter beyond the mean, and shrunk towards `PRIOR_AUTOCORRELATION`. The variance is
    shrunk towards `PRIOR_SD`, or the evaluation noise where that is known to be larger, and corrected for
    the autocorrelation: there are fewer independent residuals than points.
    """
    n = len(residuals)
    sse = float(residuals @ residuals)
    rho = float(residuals[1:] @ residuals[:-1]) / sse if sse > 0 else 0.0
    rho += (1.0 + 3.0 * rho) / n + (n_parameters - 1) * (1.0 + rho) / (2.0 * n)
    rho = (n * rho + PRIOR_POINTS * PRIOR_AUTOCORRELATION) / (n + PRIOR_POINTS)
    rho = float(np.clip(rho, 0.0, MAX_AUTOCORRELATION))
    independent = max(n * (1.0 - rho) / (1.0 + rho), 1.0)
    # What a smooth curve with k parameters absorbs of correlated noise, in independent residuals.
    free = max(independent - n_parameters, 0.25 * independent)
    prior_sd = max(PRIOR_SD, evaluation_sd or 0.0)
    variance = (sse / n * independent + PRIOR_DOF * prior_sd**2) / (free + PRIOR_DOF)
    return Noise(float(np.sqrt(variance)), rho, free + PRIOR_DOF)


def binomial_sd(pass_rate: Floats, n_prompts: Ints, n_samples: Ints) -> float:
    """Root mean square of sqrt(p (1 - p) / (prompts x samples)), an upper bound on the sampling noise of a
    fixed prompt set: prompts of unequal difficulty vary less than one coin would."""
    variance = pass_rate * (1.0 - pass_rate) / (n_prompts * n_samples)
    return float(np.sqrt(variance.mean()))


def draw_noise(noise: Noise, n: int, replicates: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """AR(1) series [replicates, n] and the sd of each [replicates], from a scaled inverse chi-square."""
    sds = noise.sd * np.sqrt(noise.dof / rng.chisquare(noise.dof, replicates))
    shocks = rng.standard_normal((replicates, n))
    rho = noise.autocorrelation
    series = np.empty((replicates, n))
    series[:, 0] = shocks[:, 0]
    for i in range(1, n):
        series[:, i] = rho * series[:, i - 1] + np.sqrt(1.0 - rho * rho) * shocks[:, i]
    return series * sds[:, None], sds


def step_sd(rate: Floats) -> float:
    """Noise from one point to the next, by the median of |differences| [n - 1]: a trend or a collapse does
    not inflate it."""
    differences = np.abs(np.diff(rate))
    return float(np.median(differences) * 1.4826 / np.sqrt(2.0)) if len(differences) else 0.0
