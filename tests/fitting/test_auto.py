"""`auto`: the laws that forecast this run well count, and asymptotes come only from laws that have one."""

from __future__ import annotations

import numpy as np
import pytest

from fitting import LAWS, Curve, FitError, ForecastOptions, forecast, gate_decision
from fitting.posterior import Series
from fitting.stacking import PRIOR, origins

LONG = np.geomspace(200.0, 60_000.0, 60)


def weights(found) -> dict[str, float]:
    return {law["law"]: law["weight"] for law in found.to_dict()["laws"]}


def test_a_run_that_has_bent_is_the_sigmoids(make_curve):
    found = weights(forecast(make_curve(LONG, sd=0.003, rho=0.3, seed=1)))
    assert found["sigmoid"] > 0.5
    assert "log-linear" not in found
    assert sum(found.values()) == pytest.approx(1.0)


def test_a_run_that_never_bends_is_not_forecast_to_saturate():
    """1 - R = 2.2 / C^0.15: laws without an asymptote carry weight, and R at 10 x compute is right."""
    compute = np.geomspace(1e3, 1e5, 50)
    rng = np.random.default_rng(0)
    curve = Curve(compute, 1 - 2.2 * compute**-0.15 + rng.normal(0, 0.004, 50))
    found = forecast(curve, ForecastOptions(at=(1e6,)))
    at = found.to_dict()["at"][0]
    truth = 1 - 2.2 * 1e6**-0.15
    assert at["value"] == pytest.approx(truth, abs=0.03)
    assert at["low"] < truth < at["high"]
    assert weights(found).get("power", 0) + weights(found).get("log-linear", 0) > 0.2
    assert found.verdict.state != "identified"


@pytest.mark.parametrize("law", ["power", "log-linear", "last-value"])
def test_a_law_without_an_asymptote_reports_none(make_curve, law):
    found = forecast(make_curve(LONG, sd=0.003), ForecastOptions(law=law))
    answer = found.to_dict()
    assert "A" not in answer["parameters"]
    assert answer["headroom"] is None
    assert answer["verdict"]["state"] == "not_identified"
    assert "no asymptote" in answer["verdict"]["reasons"][0]
    with pytest.raises(FitError) as caught:
        gate_decision(found, 0.5)
    assert caught.value.field == "law"


@pytest.mark.parametrize("law", ["saturating-power", "exponential"])
def test_other_laws_with_an_asymptote_report_it(law):
    compute = np.geomspace(10.0, 10_000.0, 40)
    truth = 0.7 - 0.5 * compute**-0.5 if law == "saturating-power" else 0.7 - 0.5 * np.exp(-compute / 800.0)
    noise = np.random.default_rng(2).normal(0, 0.003, 40)
    a = forecast(Curve(compute, truth + noise), ForecastOptions(law=law)).to_dict()["parameters"]["A"]
    assert a["value"] == pytest.approx(0.7, abs=0.01)
    assert a["low"] <= 0.7 <= a["high"]


def test_the_null_is_the_last_score_and_widens_with_distance(make_curve):
    curve = make_curve(np.linspace(1_000, 10_000, 30), sd=0.004, seed=1)
    at = forecast(curve, ForecastOptions(law="last-value", at=(11_000.0, 100_000.0))).to_dict()["at"]
    assert at[0]["value"] == at[1]["value"] == pytest.approx(curve.pass_rate[-1])
    assert at[1]["high"] - at[1]["low"] > 2 * (at[0]["high"] - at[0]["low"])


def test_few_points_leave_the_laws_as_they_were_weighted_beforehand(make_curve):
    found = weights(forecast(make_curve(np.linspace(500, 3_000, 6), sd=0.03)))
    expected = {name: value / sum(PRIOR.values()) for name, value in PRIOR.items()}
    assert found == pytest.approx(expected)


def test_weights_use_only_what_was_in_the_window(make_curve):
    """What comes after max_compute changes nothing."""
    curve = make_curve(LONG, sd=0.004, seed=3)
    options = ForecastOptions(max_compute=8_000.0, at=(50_000.0,))
    first = forecast(curve, options).to_dict()
    changed = np.where(curve.compute > 8_000, 0.95, curve.pass_rate)
    again = forecast(Curve(curve.compute, changed), options).to_dict()
    assert again["laws"] == first["laws"]
    assert again["at"] == first["at"]
    assert again["sensitivity"] == first["sensitivity"]


def test_origins_leave_something_to_forecast():
    for n in (5, 8, 20, 100):
        found = origins(Series(np.log(np.arange(1.0, n + 1)), np.zeros(n), np.ones(n)))
        assert all(5 <= k <= n - 2 for k in found)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["saturating-power", "power", "log-linear", "exponential"])
def test_whatever_law_made_the_run_the_score_at_twice_its_compute_is_covered(name):
    """90% intervals of R(2 C) under `auto`, 25 runs of another law each.

    With a true coverage of 0.85, fewer than 15 of 25 has a probability below 0.002.
    """
    compute = np.geomspace(1_000.0, 20_000.0, 30)
    truths = {
        "saturating-power": lambda c: 0.62 - 18.0 * c**-0.65,
        "power": lambda c: 1 - 1.6 * c**-0.13,
        "log-linear": lambda c: 0.05 * np.log(c) - 0.1,
        "exponential": lambda c: 0.6 - 0.3 * np.exp(-c / 6_000.0),
    }
    truth = truths[name]
    inside = 0
    for seed in range(25):
        rng = np.random.default_rng(seed)
        noise = np.convolve(rng.normal(0, 0.003, 32), [0.6, 0.5, 0.4], mode="valid")
        found = forecast(
            Curve(compute, truth(compute) + noise), ForecastOptions(at=(40_000.0,), replicates=300)
        )
        at = found.to_dict()["at"][0]
        inside += at["low"] <= truth(40_000.0) <= at["high"]
    assert inside >= 15


def test_same_bytes_whichever_laws_take_part(make_curve):
    import json

    curve = make_curve(LONG, sd=0.004)
    for law in ("auto", *LAWS):
        first, again = (json.dumps(forecast(curve, ForecastOptions(law=law)).to_dict()) for _ in range(2))
        assert first == again
