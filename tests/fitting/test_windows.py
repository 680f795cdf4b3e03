"""Windows: cut by stability, from points in the window alone, and said how much hangs on it."""

from __future__ import annotations

import numpy as np
import pytest

from fitting import Curve, FitError, ForecastOptions, forecast

COMPUTE = np.geomspace(300.0, 40_000.0, 70)


def with_an_early_dip(make_curve, depth: float = 0.08, seed: int = 0) -> Curve:
    """A run whose scores before 1,300 GPU-hours lie below the law."""
    curve = make_curve(COMPUTE, sd=0.003, seed=seed, b=1.6, cmid=5_000.0)
    return Curve(COMPUTE, np.where(COMPUTE < 1_300, curve.pass_rate - depth, curve.pass_rate))


def test_auto_drops_an_early_dip_and_recovers_the_law(make_curve):
    curve = with_an_early_dip(make_curve)
    whole = forecast(curve, ForecastOptions(law="sigmoid")).to_dict()
    cut = forecast(curve, ForecastOptions(law="sigmoid", min_compute="auto")).to_dict()
    assert 1_200 <= cut["window"]["min_compute"] <= 4_000
    errors = [abs(f["parameters"]["B"]["value"] - 1.6) for f in (whole, cut)]
    assert errors[1] < 0.5 * errors[0]
    assert cut["points"]["used"][0] is False


def test_auto_leaves_a_run_alone_that_needs_no_cut(make_curve):
    found = forecast(make_curve(COMPUTE, sd=0.003, seed=1), ForecastOptions(min_compute="auto")).to_dict()
    assert found["window"]["n_used"] == found["window"]["n_total"]


def test_auto_keeps_an_evaluation_before_rl(make_curve):
    """It is R0, and every cut was fitted with it."""
    high = with_an_early_dip(make_curve, depth=-0.08)
    curve = Curve(np.append(0.0, high.compute), np.append(0.4, high.pass_rate))
    found = forecast(curve, ForecastOptions(law="sigmoid", min_compute="auto")).to_dict()
    assert found["points"]["used"][0] is True
    assert found["points"]["used"][1] is False
    assert found["parameters"]["R0"]["value"] == pytest.approx(0.4, abs=0.01)


def test_the_report_shows_how_the_fit_moves_with_the_cut(make_curve):
    """Against fits of the same windows asked for one by one."""
    curve = with_an_early_dip(make_curve)
    rows = forecast(curve, ForecastOptions(law="sigmoid")).to_dict()["sensitivity"]
    assert [row["n_points"] for row in rows] == sorted((row["n_points"] for row in rows), reverse=True)
    for row in rows[:: len(rows) - 1]:
        options = ForecastOptions(law="sigmoid", min_compute=row["min_compute"])
        alone = forecast(curve, options).to_dict()["parameters"]
        assert row["A"] == pytest.approx(alone["A"]["value"], abs=1e-5)
        assert row["Cmid"] == pytest.approx(alone["Cmid"]["value"], rel=1e-3)


def test_a_window_that_decides_the_answer_is_said(make_curve):
    """Here A depends on how much of the dip is fitted: the verdict says so."""
    curve = with_an_early_dip(make_curve, depth=0.2)
    verdict = forecast(curve, ForecastOptions(law="sigmoid", max_compute=15_000.0)).to_dict()["verdict"]
    assert any("start of the window" in reason for reason in verdict["reasons"])
    assert verdict["state"] != "identified"


def test_a_restart_in_the_middle_is_named(make_curve):
    curve = make_curve(COMPUTE, sd=0.002)
    dropped = np.where(
        (curve.compute > 15_000) & (curve.compute < 24_000), curve.pass_rate - 0.09, curve.pass_rate
    )
    verdict = forecast(Curve(COMPUTE, dropped)).to_dict()["verdict"]
    assert verdict["state"] != "identified"
    assert any("drops by 0.0" in reason and "restart" in reason for reason in verdict["reasons"])


def test_an_impossible_start_is_refused():
    with pytest.raises(FitError) as caught:
        ForecastOptions(min_compute="early")
    assert caught.value.field == "min_compute"
    with pytest.raises(FitError, match="at least 4"):
        forecast(Curve(COMPUTE, np.full(70, 0.5)), ForecastOptions(min_compute="auto", max_compute=340.0))
