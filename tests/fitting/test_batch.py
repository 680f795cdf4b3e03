"""The batched refits against lmfit, one by one."""

from __future__ import annotations

import lmfit
import numpy as np
import pytest

from fitting.batch import Problem, fit_batch
from fitting.laws import LAWS

LAW = LAWS["sigmoid"]
LN_C = np.log(np.geomspace(300.0, 30_000.0, 60))
TRUTH = np.array([0.4, 0.35, np.log(2500.0), np.log(1.9), 0.0])


def one_by_one(rate: np.ndarray) -> tuple[float, float]:
    """A and the sum of squares by lmfit's leastsq in the paper's own parameters."""

    def residual(p):
        return rate - (p["R0"] + (p["A"] - p["R0"]) / (1 + np.exp(-p["B"] * (LN_C - p["m"]))))

    parameters = lmfit.create_params(A=0.6, R0=0.4, B=1.9, m=np.log(2500.0))
    found = lmfit.minimize(residual, parameters, method="leastsq", ftol=1e-14, xtol=1e-14, gtol=1e-14)
    return found.params["A"].value, float((found.residual**2).sum())


def problem(rates: np.ndarray) -> Problem:
    low, high = (np.broadcast_to(b, (len(rates), 5)) for b in LAW.bounds(LN_C))
    return Problem(LAW, LN_C, rates, low, high)


def test_same_asymptote_as_lmfit():
    noise = np.random.default_rng(0).normal(0, 0.004, (25, len(LN_C)))
    rates = LAW.value(TRUTH[None], LN_C) + noise
    theta, sse = fit_batch(problem(rates), np.repeat(TRUTH[None], 25, 0))
    expected = [one_by_one(rate) for rate in rates]
    assert LAW.outer_values(theta)["A"] == pytest.approx([a for a, _ in expected], abs=1e-6)
    assert sse == pytest.approx([s for _, s in expected], rel=1e-9)


def test_bounds_hold_and_what_is_held_fixed_stays():
    rates = np.random.default_rng(1).uniform(0, 1, (50, len(LN_C)))
    task = problem(rates)
    theta, _ = fit_batch(task, np.repeat(TRUTH[None], 50, 0))
    assert (theta >= task.low).all()
    assert (theta <= task.high).all()
    assert (theta[:, 4] == 0).all()


def test_chunks_do_not_change_the_answer(monkeypatch):
    rates = LAW.value(TRUTH[None], LN_C) + np.random.default_rng(2).normal(0, 0.004, (10, len(LN_C)))
    starts = np.repeat(TRUTH[None], 10, 0)
    whole, _ = fit_batch(problem(rates), starts)
    monkeypatch.setattr("fitting.batch._CHUNK", 3)
    parts, _ = fit_batch(problem(rates), starts)
    assert parts == pytest.approx(whole, abs=1e-12)
