"""lmfit's own account, robust losses, and bands by bootstrap."""

from __future__ import annotations

import lmfit
import numpy as np
import pytest

from fitting import Curve, FitError, ForecastOptions, forecast

FULL = np.geomspace(300.0, 30_000.0, 40)


def test_details_are_lmfits(make_curve):
    """Against lmfit used directly, with the paper's equation in the paper's parameters."""
    curve = make_curve(FULL, sd=0.004, seed=3)
    details = forecast(curve, ForecastOptions(law="sigmoid", details=True)).to_dict()["fit"]
    model = lmfit.Model(lambda c, A, B, Cmid, R0: R0 + (A - R0) / (1 + (Cmid / c) ** B), ["c"])
    found = model.fit(curve.pass_rate, c=curve.compute, A=0.6, B=1.9, Cmid=2500.0, R0=0.4)
    for name in ("A", "B", "Cmid", "R0"):
        assert details["standard_errors"][name] == pytest.approx(found.params[name].stderr, rel=0.01)
    assert details["correlations"]["A,Cmid"] == pytest.approx(found.params["A"].correl["Cmid"], abs=0.01)
    profile = lmfit.conf_interval(found, found, p_names=["A"], sigmas=[0.9])["A"]
    assert details["profile"]["A"]["low"] == pytest.approx(profile[0][1], abs=2e-4)
    assert details["profile"]["A"]["high"] == pytest.approx(profile[-1][1], abs=2e-4)


def test_before_the_bend_lmfit_says_that_a_and_cmid_cannot_be_told_apart(make_curve):
    curve = make_curve(np.linspace(300, 3_000, 30), sd=0.002, seed=1)
    details = forecast(curve, ForecastOptions(law="sigmoid", details=True)).to_dict()["fit"]
    assert details["correlations"]["A,Cmid"] > 0.9


def test_details_only_when_asked(make_curve):
    assert forecast(make_curve(FULL, sd=0.004)).to_dict()["fit"] is None
    power = forecast(make_curve(FULL, sd=0.004), ForecastOptions(law="power", details=True)).to_dict()
    assert power["fit"] is None


@pytest.mark.parametrize("loss", ["soft_l1", "huber", "cauchy"])
def test_a_robust_loss_is_not_moved_by_outliers(make_curve, loss):
    curve = make_curve(FULL, sd=0.002, seed=5)
    rate = curve.pass_rate.copy()
    rate[[33, 36, 38]] -= 0.08
    hit = Curve(FULL, rate)
    plain = forecast(hit, ForecastOptions(law="sigmoid")).to_dict()["parameters"]["A"]["value"]
    robust = forecast(hit, ForecastOptions(law="sigmoid", loss=loss)).to_dict()["parameters"]["A"]
    assert abs(plain - 0.61) > 0.006
    assert abs(robust["value"] - 0.61) < 0.4 * abs(plain - 0.61)


def test_bootstrap_bands_are_of_one_law_and_narrower(make_curve):
    curve = make_curve(FULL, sd=0.004, rho=0.6, seed=2)
    options = {"law": "sigmoid", "replicates": 400}
    a = [
        forecast(curve, ForecastOptions(**options, bands=bands)).to_dict()["parameters"]["A"]
        for bands in ("posterior", "bootstrap")
    ]
    assert a[0]["value"] == a[1]["value"]
    assert a[1]["high"] - a[1]["low"] < a[0]["high"] - a[0]["low"]
    with pytest.raises(FitError) as caught:
        ForecastOptions(bands="bootstrap")
    assert caught.value.field == "bands"


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"loss": "absolute"}, "loss"),
        ({"bands": "wide"}, "bands"),
        ({"seed_sd": -1.0}, "seed_sd"),
        ({"price": 2.0}, "worth"),
        ({"price": 0.0, "worth": 1.0}, "price"),
    ],
)
def test_impossible_options_are_refused(options, field):
    with pytest.raises(FitError) as caught:
        ForecastOptions(**options)
    assert caught.value.field == field
