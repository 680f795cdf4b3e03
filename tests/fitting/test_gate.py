"""The gate: never a pass or a fail that the points do not carry."""

from __future__ import annotations

import numpy as np
import pytest

from fitting import FitError, ForecastOptions, forecast, forecast_recipe, gate_decision

LONG = np.geomspace(400.0, 60_000.0, 60)
SHORT = np.linspace(300.0, 2_000.0, 15)


def known(make_curve, a: float, seed: int, **fields):
    return forecast(make_curve(LONG, a=a, sd=0.003, rho=0.3, seed=seed, **fields))


def unknown(make_curve, seed: int = 5):
    return forecast(make_curve(SHORT, cmid=6_000.0, sd=0.004, seed=seed))


def test_clearly_worse_fails_and_clearly_better_passes(make_curve):
    good, bad = known(make_curve, 0.64, 1), known(make_curve, 0.54, 2)
    assert gate_decision(bad, good).verdict == "fail"
    assert gate_decision(good, bad).verdict == "pass"
    assert gate_decision(good, 0.55).verdict == "pass"
    assert gate_decision(bad, 0.64).verdict == "fail"


def test_the_decision_shows_its_evidence(make_curve):
    decision = gate_decision(known(make_curve, 0.54, 2), known(make_curve, 0.64, 1)).to_dict()
    assert decision["difference"]["value"] == pytest.approx(-0.10, abs=0.01)
    assert decision["difference"]["low"] < -0.10 < decision["difference"]["high"]
    assert decision["p_below"] > 0.95
    assert decision["candidate"]["state"] == decision["baseline"]["state"] == "identified"


def test_at_the_margin_nothing_is_decided(make_curve):
    assert gate_decision(known(make_curve, 0.62, 1), 0.64, margin=0.02).verdict == "inconclusive"


def test_an_unidentified_candidate_never_passes_on_its_point_estimate(make_curve):
    candidate = unknown(make_curve)
    decision = gate_decision(candidate, 0.45)
    assert decision.verdict == "inconclusive"
    assert "not identified" in decision.reasons[0]


def test_nothing_passes_against_an_unidentified_baseline(make_curve):
    assert gate_decision(known(make_curve, 0.64, 1), unknown(make_curve)).verdict == "inconclusive"


def test_an_unidentified_candidate_is_not_failed_either(make_curve):
    assert gate_decision(unknown(make_curve), 0.99).verdict == "inconclusive"


def test_units_are_never_mixed(make_curve):
    with pytest.raises(FitError) as caught:
        gate_decision(known(make_curve, 0.6, 1), known(make_curve, 0.6, 2, unit="flops"))
    assert caught.value.field == "unit"


@pytest.mark.parametrize(
    ("arguments", "field"),
    [({"margin": -0.1}, "margin"), ({"confidence": 0.5}, "confidence"), ({"confidence": 95}, "confidence")],
)
def test_impossible_thresholds_are_refused(make_curve, arguments, field):
    with pytest.raises(FitError) as caught:
        gate_decision(known(make_curve, 0.6, 1), 0.6, **arguments)
    assert caught.value.field == field


def test_seeds_of_a_recipe_are_pooled(make_curve):
    asymptotes = (0.60, 0.62, 0.61)
    runs = [make_curve(LONG, a=a, sd=0.003, seed=i, name=f"s{i}") for i, a in enumerate(asymptotes)]
    pooled = forecast_recipe(runs, ForecastOptions(at=(1e5,)), "my recipe")
    assert pooled.to_dict()["run"] == "my recipe"
    a = pooled.to_dict()["parameters"]["A"]
    assert a["value"] == pytest.approx(0.61, abs=0.004)
    # sd between runs 0.01, shrunk with two assumed runs of 0.0075: sqrt((2 * 0.0075^2 + 2e-4) / 4) = 0.0088
    assert pooled.run_sd == pytest.approx(0.0088, abs=0.001)
    assert a["high"] - a["low"] > 2 * 1.645 * 0.0088 / np.sqrt(3)


def test_a_recipes_runs_share_a_unit(make_curve):
    with pytest.raises(FitError) as caught:
        forecast_recipe([make_curve(LONG), make_curve(LONG, unit="tokens")])
    assert caught.value.field == "unit"
    with pytest.raises(FitError, match="run 's1': 3 points") as caught:
        forecast_recipe([make_curve(LONG, name="s0"), make_curve(LONG[:3], name="s1")])
    assert caught.value.field == "points"
    with pytest.raises(FitError) as caught:
        forecast_recipe([])
    assert caught.value.field == "runs"
