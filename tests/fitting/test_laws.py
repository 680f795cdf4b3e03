"""The sigmoid against numbers worked out by hand, its derivatives against differences."""

from __future__ import annotations

import numpy as np
import pytest

from fitting import LAWS

LAW = LAWS["sigmoid"]


def inner(a: float, b: float, cmid: float, r0: float, shape: float = 1.0) -> np.ndarray:
    return np.array([r0, (a - r0) / (1 - r0), np.log(cmid), np.log(b), np.log(shape)])


def test_values_worked_out_by_hand():
    theta = inner(a=0.61, b=2.0, cmid=1000.0, r0=0.41)
    # C = Cmid: half of the gain; C = 2 Cmid: 1 / (1 + 1/4) = 0.8 of it; C = Cmid / 2: 0.2 of it.
    value = LAW.value(theta, np.log([1000.0, 2000.0, 500.0]))
    assert value == pytest.approx([0.51, 0.57, 0.45], abs=1e-12)


def test_zero_compute_has_the_score_before_rl():
    theta = inner(a=0.61, b=2.0, cmid=1000.0, r0=0.41)
    value, jacobian = LAW.value_and_jacobian(theta, np.array([-1000.0]))
    assert value == pytest.approx([0.41], abs=1e-12)
    assert np.isfinite(jacobian).all()


@pytest.mark.parametrize("shape", [1.0, 0.3, 3.0])
def test_derivatives(shape):
    theta = inner(0.6, 1.7, 3000.0, 0.3, shape)
    ln_c = np.log([500.0, 3000.0, 40000.0])
    _, jacobian = LAW.value_and_jacobian(theta, ln_c)
    for i in range(5):
        step = np.zeros(5)
        step[i] = 1e-6
        difference = (LAW.value(theta + step, ln_c) - LAW.value(theta - step, ln_c)) / 2e-6
        assert jacobian[:, i] == pytest.approx(difference, abs=1e-7)


def test_users_see_the_papers_parameters():
    found = LAW.outer_values(inner(0.61, 1.92, 2542.0, 0.4))
    assert {k: float(v) for k, v in found.items()} == pytest.approx(
        {"A": 0.61, "B": 1.92, "Cmid": 2542.0, "R0": 0.4}
    )


@pytest.mark.parametrize("shape", [0.3, 3.0])
def test_another_shapes_midpoint_is_where_half_of_the_gain_is_reached(shape):
    theta = inner(0.6, 1.7, 3000.0, 0.3, shape)
    cmid = LAW.outer_values(theta)["Cmid"]
    assert LAW.value(theta, np.log([cmid])) == pytest.approx([0.45], abs=1e-12)


def test_compute_for_a_score_is_the_inverse():
    theta = inner(0.61, 2.0, 1000.0, 0.41)
    assert np.exp(LAW.compute_for(theta, 0.57)) == pytest.approx(2000.0)
    assert LAW.compute_for(theta, 0.61) == np.inf
    assert LAW.compute_for(theta, 0.9) == np.inf
    assert LAW.compute_for(theta, 0.2) == -np.inf
