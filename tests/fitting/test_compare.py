"""Comparing recipes: ceilings, efficiency at a common ceiling, crossings and winners, against known truths."""

from __future__ import annotations

import numpy as np
import pytest

from fitting import FitError, ForecastOptions, compare, forecast, forecast_recipe

LONG = np.geomspace(300.0, 60_000.0, 60)
OPTIONS = ForecastOptions(law="sigmoid", seed_sd=0.003)


def known(make_curve, name: str, seed: int, options: ForecastOptions = OPTIONS, **truth):
    return forecast(make_curve(LONG, sd=0.002, rho=0.2, seed=seed, name=name, **truth), options)


def test_a_higher_ceiling_is_a_ceiling_mover(make_curve):
    high, low = known(make_curve, "high", 1, a=0.68), known(make_curve, "low", 2, a=0.61)
    found = compare(high, low).to_dict()
    assert found["difference"]["value"] == pytest.approx(0.07, abs=0.005)
    assert found["difference"]["low"] < 0.07 < found["difference"]["high"]
    assert found["difference"]["p_higher_by_margin"] > 0.99
    assert found["label"]["name"] == "ceiling mover"
    assert found["efficiency"]["common_a"] is None
    assert "rank by A" in found["efficiency"]["reason"]
    assert found["winners"][-1]["winner"] == "candidate"


def test_a_steeper_run_to_the_same_ceiling_is_an_efficiency_shaper(make_curve):
    """The paper's rule: within the margin both are fitted again with A at the mean, and B is compared."""
    fast, slow = known(make_curve, "fast", 1, b=2.3), known(make_curve, "slow", 2, b=1.5)
    found = compare(fast, slow).to_dict()
    assert abs(found["difference"]["value"]) < 0.02
    assert found["efficiency"]["common_a"] == pytest.approx(0.61, abs=0.005)
    assert found["efficiency"]["candidate_b"] == pytest.approx(2.3, abs=0.15)
    assert found["efficiency"]["baseline_b"] == pytest.approx(1.5, abs=0.15)
    assert found["efficiency"]["ratio"]["low"] < 2.3 / 1.5 < found["efficiency"]["ratio"]["high"]
    assert found["efficiency"]["p_higher"] > 0.95
    assert found["label"]["name"] == "efficiency shaper"


def test_twins_are_neither(make_curve):
    found = compare(known(make_curve, "one", 1), known(make_curve, "two", 2)).to_dict()
    assert found["label"]["name"] == "neither"
    assert 0.05 < found["efficiency"]["p_higher"] < 0.95


def test_a_higher_ceiling_reached_later_is_both(make_curve):
    found = compare(
        known(make_curve, "high and late", 1, a=0.68, cmid=6_000.0), known(make_curve, "low", 2, a=0.61)
    ).to_dict()
    assert found["label"]["name"] == "both"


def test_an_unidentified_side_gets_no_label(make_curve):
    short = forecast(make_curve(np.linspace(300, 2_000, 15), sd=0.004, cmid=6_000.0, name="short"), OPTIONS)
    found = compare(short, known(make_curve, "long", 2)).to_dict()
    assert found["label"]["name"] is None
    assert "not identified of short" in found["label"]["evidence"][0]


def test_a_late_bloomer_crosses_where_the_laws_do(make_curve, law):
    """Fast with A 0.55 against slow with A 0.65: the truth crosses where both laws are equal."""
    slow = known(make_curve, "slow", 1, a=0.65, cmid=9_000.0, b=1.4)
    fast = known(make_curve, "fast", 2, a=0.55, cmid=1_500.0, b=1.8)
    grid = np.geomspace(2_000, 100_000, 20_001)
    gap = law(grid, 0.65, 1.4, 9_000.0, 0.4) - law(grid, 0.55, 1.8, 1_500.0, 0.4)
    truth = grid[np.flatnonzero(np.diff(np.sign(gap)))[-1]]
    crossing = compare(slow, fast).to_dict()["crossing"]
    assert crossing["compute"] == pytest.approx(truth, rel=0.08)
    assert crossing["low"] < truth < crossing["high"]
    assert crossing["leads_after"] == "candidate"
    assert crossing["p_crosses"] > 0.95


def test_compute_to_reach_a_score(make_curve):
    """0.55 is 15/21 of the way from 0.4 to 0.61: C = Cmid (15/6)^(1/B)."""
    late, early = known(make_curve, "late", 1, cmid=5_000.0), known(make_curve, "early", 2, cmid=2_500.0)
    reach = compare(late, early, reach=0.55).to_dict()["reach"]
    assert reach["candidate"] == pytest.approx(5_000.0 * 2.5 ** (1 / 1.9), rel=0.03)
    assert reach["ratio"]["low"] < 2.0 < reach["ratio"]["high"]
    assert reach["p_candidate_first"] < 0.01
    assert compare(late, early, reach=0.9).to_dict()["reach"]["ratio"] is None


def test_different_prompts_widen_the_difference_and_need_their_number(make_curve):
    prompts = np.full(len(LONG), 400)
    sides = [known(make_curve, name, seed, n_prompts=prompts) for name, seed in (("a", 1), ("b", 2))]
    same, other = (compare(*sides, same_prompts=s).to_dict()["difference"] for s in (True, False))
    # Each side's choice of prompts: sqrt(0.61 * 0.39 / 400) = 0.0244 at the end.
    expected = np.hypot((same["high"] - same["low"]) / 3.29, np.sqrt(2) * 0.0244) * 3.29
    assert other["high"] - other["low"] == pytest.approx(expected, rel=0.1)
    with pytest.raises(FitError) as caught:
        compare(known(make_curve, "a", 1), known(make_curve, "b", 2), same_prompts=False)
    assert caught.value.field == "n_prompts"


def test_recipes_of_several_seeds_are_compared(make_curve):
    def recipe(name: str, a: float, seeds: tuple[int, ...]):
        shifts = (-0.004, 0.0, 0.004)
        runs = [
            make_curve(LONG, a=a + shift, sd=0.002, seed=seed, name=f"{name}{seed}")
            for seed, shift in zip(seeds, shifts, strict=True)
        ]
        return forecast_recipe(runs, OPTIONS, name)

    found = compare(recipe("new", 0.66, (1, 2, 3)), recipe("old", 0.61, (4, 5, 6))).to_dict()
    assert found["candidate"]["name"] == "new"
    assert found["label"]["name"] == "ceiling mover"
    assert found["difference"]["value"] == pytest.approx(0.05, abs=0.006)


def test_laws_without_an_asymptote_are_compared_by_score_alone(make_curve):
    power = ForecastOptions(law="power")
    found = compare(known(make_curve, "a", 1, power, a=0.68), known(make_curve, "b", 2, power)).to_dict()
    assert found["difference"] is None
    assert found["label"]["name"] is None
    assert found["winners"][-1]["winner"] == "candidate"


def test_units_are_never_mixed(make_curve):
    with pytest.raises(FitError) as caught:
        compare(known(make_curve, "a", 1), known(make_curve, "b", 2, unit="tokens"))
    assert caught.value.field == "unit"
