"""Noise estimates, and what a gate must never do, by simulation against the known truth."""

from __future__ import annotations

import numpy as np
import pytest

from fitting import Curve, ForecastOptions, forecast
from fitting.noise import draw_noise, estimate_noise, evaluation_variance, sampling_sd


def ar1(n: int, rho: float, sd: float, seed: int) -> np.ndarray:
    shocks = np.random.default_rng(seed).standard_normal(n)
    series = np.empty(n)
    series[0] = shocks[0]
    for i in range(1, n):
        series[i] = rho * series[i - 1] + np.sqrt(1 - rho**2) * shocks[i]
    return sd * series


@pytest.mark.parametrize("rho", [0.2, 0.6])
def test_a_long_series_gives_its_own_noise_back(rho):
    found = estimate_noise(ar1(4000, rho, 0.01, seed=1), n_parameters=4, evaluation_sd=None)
    assert found.autocorrelation == pytest.approx(rho, abs=0.05)
    assert found.sd == pytest.approx(0.01, rel=0.1)


def test_a_short_series_leans_on_what_is_known_of_others():
    found = estimate_noise(np.zeros(6), n_parameters=4, evaluation_sd=None)
    assert 0.002 < found.sd < 0.01
    assert estimate_noise(np.zeros(6), 4, evaluation_sd=0.03).sd > 0.01


def test_binomial_noise_by_hand():
    # p = 0.5, 1,000 prompts x 16 samples: sqrt(0.25 / 16,000) = 0.00395
    curve = Curve(np.arange(1.0, 5.0), np.full(4, 0.5), n_prompts=np.full(4, 1000), n_samples=np.full(4, 16))
    used = np.array([True, False, True, True])
    assert np.sqrt(evaluation_variance(curve, used)) == pytest.approx([0.003953] * 3, abs=1e-6)
    assert evaluation_variance(Curve(np.arange(1.0, 5.0), np.full(4, 0.5)), used) is None


def test_per_prompt_counts_sharpen_the_noise():
    # Two prompts of 4 samples: one always solved, one half the time: sqrt(0.25 / 3) / 2 = 0.144, while the
    # mean 0.75 alone would say sqrt(0.1875 / 8) = 0.153.
    assert sampling_sd(np.array([4, 2]), 4) == pytest.approx(np.sqrt(0.25 / 3) / 2)
    assert np.isnan(sampling_sd(np.array([1, 0]), 1))
    rng = np.random.default_rng(0)
    p = rng.beta(0.5, 0.5, 400)
    scores = rng.binomial(8, p, (3000, 400)).mean(1) / 8
    said = [sampling_sd(rng.binomial(8, p), 8) for _ in range(200)]
    assert np.mean(said) == pytest.approx(scores.std(), rel=0.05)


def test_drawn_noise_has_the_asked_size_and_correlation():
    noise = estimate_noise(ar1(4000, 0.6, 0.01, seed=2), 4, None)
    series, sds = draw_noise(noise, 400, 200, np.random.default_rng(0))
    assert series.std() == pytest.approx(noise.sd, rel=0.05)
    lagged = (series[:, 1:] * series[:, :-1]).mean() / (series**2).mean()
    assert lagged == pytest.approx(noise.autocorrelation, abs=0.05)
    assert sds.shape == (200,)


@pytest.mark.slow
@pytest.mark.parametrize("rho", [0.0, 0.6])
def test_ninety_percent_intervals_cover_the_truth(make_curve, law, rho):
    """A and R(100k) of 60 simulated runs to 4 x Cmid. A plain residual bootstrap covers 56–61% at rho 0.6.

    With a true coverage of 0.90, fewer than 47 of 60 has a probability below 0.001.
    """
    truth = float(law(1e5, 0.61, 1.9, 2500.0, 0.4))
    inside_a = inside_r = 0
    for seed in range(60):
        curve = make_curve(np.linspace(1500, 10_000, 24), sd=0.004, rho=rho, seed=seed)
        found = forecast(curve, ForecastOptions(at=(1e5,), replicates=300)).to_dict()
        a, r = found["parameters"]["A"], found["at"][0]
        inside_a += a["low"] <= 0.61 <= a["high"]
        inside_r += r["low"] <= truth <= r["high"]
    assert inside_a >= 47
    assert inside_r >= 47
