"""The published procedure against its own steps done one by one with scipy, and against published values."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import curve_fit

from fitting import Curve, ForecastOptions, forecast
from fitting.paper import a_grid, cmid_grid


def by_hand(compute: np.ndarray, rate: np.ndarray, r0: float, a_s: np.ndarray, cmids: np.ndarray):
    """A.5 of the paper: for each pair of A and Cmid, B alone by curve_fit; the pair with the least squares."""
    best = (np.inf, 0.0, 0.0, 0.0)
    for a in a_s:
        for cmid in cmids:

            def law(c, b, a=a, cmid=cmid):
                return r0 + (a - r0) / (1 + (cmid / c) ** b)

            (b,), _ = curve_fit(law, compute, rate, p0=(1.0,))
            best = min(best, (float(((rate - law(compute, b)) ** 2).sum()), a, cmid, b))
    return best[1:]


def test_the_grid_is_the_papers_for_the_papers_windows():
    # All small published runs lie on linspace(100, 4000, 100), and A in steps of 0.005 from 0.45 to 0.8.
    assert cmid_grid(np.array([1_500.0, 3_000.0, 4_000.0])) == pytest.approx(np.linspace(100, 4_000, 100))
    assert a_grid(0.6) == pytest.approx(np.arange(90, 161) * 0.005)
    assert a_grid(0.95)[-1] == 1.0
    for published in (2542, 3054, 2936, 2818, 2896, 1675, 2857):
        assert np.floor(cmid_grid(np.array([1_500.0, 4_000.0]))).tolist().count(published) == 1


def test_the_same_pair_as_the_steps_done_one_by_one(make_curve):
    curve = make_curve(np.linspace(300, 9_000, 24), sd=0.002, seed=2, r0=0.4)
    found = forecast(curve, ForecastOptions(law="scalerl-paper", min_compute=1_500.0)).to_dict()["parameters"]
    used = curve.compute >= 1_500
    near = np.arange(118, 128) * 0.005  # A from 0.59 to 0.635: the full grid by hand takes minutes
    grid = cmid_grid(curve.compute[used])
    close = grid[(grid > 1_900) & (grid < 3_300)]
    a, cmid, b = by_hand(curve.compute[used], curve.pass_rate[used], curve.pass_rate[0], near, close)
    assert found["A"]["value"] == pytest.approx(a, abs=1e-9)
    assert found["Cmid"]["value"] == pytest.approx(cmid, rel=1e-9)
    assert found["B"]["value"] == pytest.approx(b, rel=1e-3)


def test_the_published_8b_run(scalerl_8b):
    """The paper says A 0.645 and B 1.70 from 1.5k to 50k; the points here are read off its figure."""
    options = ForecastOptions(law="scalerl-paper", max_compute=50_000.0)
    found = forecast(scalerl_8b, options).to_dict()
    assert found["parameters"]["A"]["value"] == pytest.approx(0.645, abs=0.02)
    assert found["parameters"]["B"]["value"] == pytest.approx(1.70, abs=0.3)
    assert found["window"]["min_compute"] >= 1_500
    assert any("dropped, as published" in note for note in found["notes"])
    assert any("in steps of 0.005" in note for note in found["notes"])


def test_other_units_have_no_published_cut(make_curve):
    curve = make_curve(np.linspace(300, 9_000, 24), unit="tokens")
    found = forecast(curve, ForecastOptions(law="scalerl-paper")).to_dict()
    assert found["window"]["min_compute"] == 300.0
    assert not any("dropped" in note for note in found["notes"])


def test_a_run_that_never_rises_is_refused_clearly():
    from fitting import FitError

    with pytest.raises(FitError, match="nothing that the procedure can fit"):
        forecast(Curve(np.arange(1.0, 9.0), np.full(8, 1.0), "steps"), ForecastOptions(law="scalerl-paper"))
