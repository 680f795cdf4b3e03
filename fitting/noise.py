"""How noisy a run is: size and autocorrelation of its deviations from the law."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fitting.curve import Bools, Curve, Floats, Ints

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


def evaluation_variance(curve: Curve, used: Bools) -> Floats | None:
    """Sampling variance of each used score [n]: from `score_sd` where per-prompt counts gave it, else the bound
    p (1 - p) / (prompts x samples), which takes prompts as equally hard; None where counts are not known.

    Which prompts were drawn is not in it: the same ones are used at every checkpoint and move the whole curve.
    """
    if curve.score_sd is not None:
        return np.asarray(curve.score_sd[used] ** 2)
    if curve.n_prompts is None or curve.n_samples is None:
        return None
    rate = curve.pass_rate[used]
    return np.asarray(rate * (1.0 - rate) / (curve.n_prompts[used] * curve.n_samples[used]))


def sampling_sd(solved: Ints, n_samples: int) -> float:
    """Standard error of a mean pass rate from how many of `n_samples` each prompt solved, shape [prompts].

    sqrt(sum_i p_i (1 - p_i) / (k - 1)) / N with p_i = solved_i / k: the unbiased within-prompt variance of a
    fixed set of N prompts. Needs 2 samples a prompt; NaN with one.
    """
    if n_samples < 2:
        return float("nan")
    p = np.asarray(solved, dtype=np.float64) / n_samples
    return float(np.sqrt((p * (1.0 - p)).sum() / (n_samples - 1)) / len(p))


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
