"""What more compute gains, against the law's own derivative."""

from __future__ import annotations

import numpy as np
import pytest

from fitting import ForecastOptions, forecast

LONG = np.geomspace(300.0, 20_000.0, 60)
SIGMOID = {"law": "sigmoid"}


def test_the_next_tenth_and_the_slope(make_curve, law):
    value = forecast(make_curve(LONG, sd=0.001, seed=1), ForecastOptions(**SIGMOID)).to_dict()["value"]

    def truth(compute):
        return law(compute, 0.61, 1.9, 2500.0, 0.4)

    gain = truth(22_000.0) - truth(20_000.0)
    assert value["next_tenth"]["gain"] == pytest.approx(gain, rel=0.1)
    assert value["next_tenth"]["low"] < gain < value["next_tenth"]["high"]
    assert value["gain_per_unit"] == pytest.approx(truth(20_000.5) - truth(19_999.5), rel=0.15)


def test_where_a_tenth_more_no_longer_gains_two_thousandths(make_curve, law):
    value = forecast(make_curve(LONG[:50], sd=0.001, seed=1), ForecastOptions(**SIGMOID)).to_dict()["value"]
    grid = np.geomspace(LONG[49], 1e6, 100_000)
    gains = law(1.1 * grid, 0.61, 1.9, 2500.0, 0.4) - law(grid, 0.61, 1.9, 2500.0, 0.4)
    truth = grid[np.argmax(gains < 0.002)]
    found = value["diminishing_from"]
    assert value["diminishing_means"] == {"share": 0.1, "gain_below": 0.002}
    assert found["compute"] == pytest.approx(truth, rel=0.15)
    assert found["low"] <= truth <= found["high"]


def test_up_to_where_compute_pays(make_curve, law):
    """A GPU-hour for 2, a point of pass rate for 5,000: it pays while dR/dC > 2 / 500,000."""
    options = ForecastOptions(**SIGMOID, price=2.0, worth=5_000.0)
    found = forecast(make_curve(LONG[:40], sd=0.001, seed=1), options).to_dict()["value"]["pays_until"]
    grid = np.geomspace(LONG[39], 1e6, 200_000)
    slope = np.diff(law(grid, 0.61, 1.9, 2500.0, 0.4)) / np.diff(grid)
    truth = grid[np.argmax(slope < 2.0 / 500_000)]
    assert found["compute"] == pytest.approx(truth, rel=0.1)
    assert forecast(make_curve(LONG, sd=0.001)).to_dict()["value"]["pays_until"] is None


def test_a_flat_run_has_nothing_left_to_gain(make_curve):
    value = forecast(make_curve(np.linspace(1e5, 2e5, 30), sd=0.001)).to_dict()["value"]
    assert value["next_tenth"]["gain"] == pytest.approx(0.0, abs=0.001)
    assert value["diminishing_from"]["compute"] == pytest.approx(2e5, rel=0.05)
