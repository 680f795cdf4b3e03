"""Back-tests: scores worked out independently, and nothing skipped in silence."""

from __future__ import annotations

import numpy as np
import pytest

from fitting import Curve, FitError, ForecastOptions, backtest, forecast

LONG = np.geomspace(300.0, 30_000.0, 50)


def test_scores_by_hand(make_curve):
    curve = make_curve(LONG, sd=0.004, seed=1, name="mine")
    [score] = backtest([curve], [0.5], ["sigmoid"]).scores
    happened = curve.pass_rate[-5:].mean()  # a tenth of 50 points
    at = float(np.exp(np.log(LONG[-5:]).mean()))
    seen = Curve(LONG[:25], curve.pass_rate[:25])
    answer = forecast(seen, ForecastOptions(law="sigmoid", at=(at,))).to_dict()["at"][0]
    assert (score.forecast, score.low, score.high) == (answer["value"], answer["low"], answer["high"])
    assert score.happened == pytest.approx(happened)
    assert score.error == pytest.approx(answer["value"] - happened)
    miss = max(answer["low"] - happened, happened - answer["high"], 0.0)
    assert score.interval_score == pytest.approx(score.width + 2 / 0.1 * miss)
    assert score.n_seen == 25


def test_crps_of_a_sharp_right_forecast_is_small_and_of_the_null_larger(make_curve):
    curves = [make_curve(LONG, sd=0.003, seed=s, name=f"r{s}") for s in range(3)]
    rows = {row["method"]: row for row in backtest(curves, [0.5], ["sigmoid", "last-value"]).summary()}
    assert rows["sigmoid"]["crps"] < 0.5 * rows["last-value"]["crps"]
    assert rows["sigmoid"]["mean_absolute_error"] < rows["last-value"]["mean_absolute_error"]
    assert rows["sigmoid"]["n"] == 3
    assert 0.0 <= rows["sigmoid"]["coverage"] <= 1.0


def test_short_curves_are_listed_with_the_reason(make_curve):
    found = backtest([make_curve(LONG[:8], name="short"), make_curve(LONG, name="long")], [0.25], ["auto"])
    assert [s.curve for s in found.scores] == ["long"]
    assert found.skipped[0][:2] == ("short", 0.25)
    assert "at least 4" in found.skipped[0][2]


def test_progress_names_each_curve(make_curve):
    seen: list[str] = []
    backtest([make_curve(LONG, name="one")], [0.5], ["last-value"], progress=seen.append)
    assert seen == ["one"]


@pytest.mark.parametrize(("curves", "fractions", "field"), [(0, [0.5], "curves"), (1, [1.5], "fractions")])
def test_impossible_back_tests_are_refused(make_curve, curves, fractions, field):
    with pytest.raises(FitError) as caught:
        backtest([make_curve(LONG)] * curves, fractions)
    assert caught.value.field == field


@pytest.mark.slow
def test_the_published_run_is_forecast_within_a_point_of_percent(scalerl_8b):
    rows = {row["method"]: row for row in backtest([scalerl_8b], [0.5]).summary()}
    assert rows["auto"]["mean_absolute_error"] < 0.025
    assert rows["auto"]["coverage"] == 1.0
