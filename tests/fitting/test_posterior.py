"""The posterior against formulas for the cases that have one, and against the exact AR(1) covariance."""

from __future__ import annotations

import numpy as np
import pytest

from fitting import LAWS, Curve, ForecastOptions, forecast
from fitting.correlation import SETTINGS, transform, variances
from fitting.parts import MAX_POINTS, binned
from fitting.posterior import Series, posterior


def ar1_covariance(n: int, rho: float, white: float) -> np.ndarray:
    lag = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    return (1 - white) * rho**lag + white * np.eye(n)


def test_the_transform_is_orthonormal_and_keeps_the_variance():
    for n in (5, 40):
        assert transform(n) @ transform(n).T == pytest.approx(np.eye(n), abs=1e-12)
        assert variances(n).sum(axis=1) == pytest.approx(np.full(len(SETTINGS.rho), n))


@pytest.mark.parametrize("n", [12, 60])
def test_generalised_least_squares_by_the_transform_is_close_to_the_exact_one(n):
    """Standard error of a line's slope under each setting, against the exact covariance's."""
    line = np.stack([np.ones(n), np.linspace(-1, 1, n)])
    for k, (rho, white) in enumerate(zip(SETTINGS.rho, SETTINGS.white, strict=True)):
        exact = np.linalg.inv(line @ np.linalg.inv(ar1_covariance(n, max(rho, 1e-9), white)) @ line.T)
        moved = line @ transform(n)
        ours = np.linalg.inv((moved / variances(n)[k]) @ moved.T)
        assert np.sqrt(ours[1, 1]) == pytest.approx(np.sqrt(exact[1, 1]), rel=0.12), (rho, white)


def test_a_line_with_white_noise_has_the_textbook_posterior():
    """Mean and spread of slope and height of 200 points: the least-squares line and its standard errors."""
    n, sd = 200, 0.01
    ln_c = np.linspace(-2.0, 2.0, n)
    rng = np.random.default_rng(3)
    rate = 0.4 + 0.05 * ln_c + rng.normal(0, sd, n)
    draws = posterior(LAWS["log-linear"], Series(ln_c, rate, np.ones(n)), np.empty(0), None, 4000, rng)
    design = np.stack([ln_c, np.ones(n)], axis=1)
    best, left, *_ = np.linalg.lstsq(design, rate, rcond=None)
    errors = np.sqrt(np.diag(np.linalg.inv(design.T @ design)) * left[0] / (n - 2))
    assert draws.theta.mean(0) == pytest.approx(best, abs=0.3 * errors.min())
    # The autocorrelation is unknown to it, so it is a little wider, and never narrower.
    assert (draws.theta.std(0) >= 0.95 * errors).all()
    assert (draws.theta.std(0) <= 1.6 * errors).all()
    assert np.median(draws.sd) == pytest.approx(sd, rel=0.15)


def test_strong_correlation_is_seen_and_widens_the_interval(make_curve):
    compute = np.linspace(1_000, 40_000, 90)
    options = ForecastOptions(law="sigmoid")
    found = [forecast(make_curve(compute, sd=0.005, rho=r, seed=4), options).to_dict() for r in (0.0, 0.85)]
    assert found[0]["noise"]["autocorrelation"] < 0.4 < 0.7 < found[1]["noise"]["autocorrelation"]
    widths = [f["parameters"]["A"]["high"] - f["parameters"]["A"]["low"] for f in found]
    assert widths[1] > 1.5 * widths[0]


def test_a_curve_that_has_not_bent_keeps_a_long_tail(make_curve):
    found = forecast(
        make_curve(np.linspace(300, 2_000, 20), sd=0.003, seed=1), ForecastOptions(law="sigmoid")
    )
    low, high = np.quantile(found.asymptote, [0.05, 0.95])
    assert low < 0.61 < high
    assert high > 0.8


def test_replicates_stay_within_the_law(make_curve):
    found = forecast(make_curve(np.geomspace(300, 9_000, 25), r0=0.05, a=0.97, sd=0.01, seed=2))
    draws = found.ensemble.outer_draws()
    assert (draws["A"] <= 1.0).all()
    assert (draws["R0"] >= 0.0).all()
    assert (draws["R0"] <= draws["A"].max()).all()


def test_long_runs_are_binned_for_the_replicates_and_forecast_alike(make_curve):
    compute = np.linspace(200, 40_000, 6_000)
    curve = make_curve(compute, sd=0.02, seed=5)
    series = Series(np.log(compute), curve.pass_rate, np.ones(len(compute)))
    short = binned(series)
    assert len(short) == MAX_POINTS
    assert short.rate.mean() == pytest.approx(curve.pass_rate.mean(), abs=1e-3)
    a = forecast(curve, ForecastOptions(law="sigmoid")).to_dict()["parameters"]["A"]
    assert a["low"] < 0.61 < a["high"]
    assert a["high"] - a["low"] < 0.01


def test_better_measured_points_count_more():
    """Six points of 10,000 samples against six of 40, which lie higher: the fit follows the first."""
    compute = np.tile(np.geomspace(100, 10_000, 6), 2)
    truth = 0.3 + 0.3 / (1 + 1_000 / compute)
    rate = truth + np.repeat([0.0, 0.06], 6)
    prompts, samples = np.repeat([1000, 20], 6), np.repeat([10, 2], 6)
    plain = forecast(Curve(compute, rate), ForecastOptions(law="sigmoid", at=(1e4,)))
    known = forecast(
        Curve(compute, rate, n_prompts=prompts, n_samples=samples), ForecastOptions(law="sigmoid", at=(1e4,))
    )
    error = [abs(f.to_dict()["at"][0]["value"] - (0.3 + 0.3 / 1.1)) for f in (plain, known)]
    assert error[0] > 0.02 > 0.01 > error[1]
    assert known.to_dict()["noise"]["evaluation_sd"] > 0
    assert any("evaluation noise" in part for part in known.to_dict()["uncertainty"])
