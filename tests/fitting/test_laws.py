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


# -- every law -------------------------------------------------------------------------------------

#: Inner parameters, ln C, and the values worked out by hand.
KNOWN = {
    "sigmoid": (inner(0.61, 2.0, 1000.0, 0.41), np.log([1000.0, 2000.0]), [0.51, 0.57]),
    # A - D / C^B at C = 4: 0.7 - 0.2 / 2.
    "saturating-power": (np.array([0.2, 0.7, np.log(0.5)]), np.log([1.0, 4.0]), [0.5, 0.6]),
    # 1 - K / C^b at C = 4: 1 - 0.8 / 2.
    "power": (np.array([0.8, 0.5]), np.log([1.0, 4.0]), [0.2, 0.6]),
    "log-linear": (np.array([0.1, 0.3]), np.array([0.0, 2.0]), [0.3, 0.5]),
    # A - (A - R0) / e at C = tau.
    "exponential": (np.array([0.2, 0.7, np.log(50.0)]), np.log([50.0]), [0.7 - 0.5 / np.e]),
    "last-value": (np.array([0.4]), np.log([1.0, 1e9]), [0.4, 0.4]),
}


@pytest.mark.parametrize("name", LAWS)
def test_every_laws_values_worked_out_by_hand(name):
    theta, ln_c, expected = KNOWN[name]
    assert LAWS[name].value(theta, ln_c) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", LAWS)
def test_every_laws_derivatives(name):
    law = LAWS[name]
    theta, _, _ = KNOWN[name]
    ln_c = np.array([-0.7, 0.4, 2.0]) + (np.log(1000.0) if name == "sigmoid" else 0.0)
    value, jacobian = law.value_and_jacobian(theta, ln_c)
    assert value == pytest.approx(law.value(theta, ln_c), abs=1e-14)
    for i in range(len(theta)):
        step = np.zeros(len(theta))
        step[i] = 1e-6
        difference = (law.value(theta + step, ln_c) - law.value(theta - step, ln_c)) / 2e-6
        assert jacobian[:, i] == pytest.approx(difference, abs=1e-6), law.inner[i]


@pytest.mark.parametrize("name", LAWS)
def test_a_law_is_linear_in_its_coefficients(name):
    """What the posterior rests on: offset + coefficients x basis is the law's value, and join undoes split."""
    law = LAWS[name]
    theta, ln_c, expected = KNOWN[name]
    coef, psi = law.split(theta)
    assert law.offset + coef @ law.basis(psi, ln_c) == pytest.approx(expected, abs=1e-12)
    assert law.join(coef, psi) == pytest.approx(theta, abs=1e-9)


@pytest.mark.parametrize("name", [n for n in LAWS if n != "last-value"])
def test_every_laws_compute_for_a_score_is_the_inverse(name):
    law = LAWS[name]
    theta, ln_c, expected = KNOWN[name]
    assert law.compute_for(theta, expected[-1]) == pytest.approx(ln_c[-1], abs=1e-9)
    if "A" in law.outer:
        above = float(law.outer_values(theta)["A"]) + 0.01
        assert law.compute_for(theta, above) == np.inf


@pytest.mark.parametrize("name", LAWS)
def test_parameters_do_not_depend_on_the_unit_that_a_fit_counts_in(name):
    """The same curve in units of 1,000 has the same parameters for users, and the same values."""
    law = LAWS[name]
    theta, ln_c, expected = KNOWN[name]
    ln_unit = np.log(1000.0)
    moved = theta.copy()
    if name == "sigmoid":
        moved[2] -= ln_unit
    elif name == "saturating-power":
        moved[0] *= np.exp(-np.exp(theta[2]) * ln_unit)
    elif name == "power":
        moved[0] *= np.exp(-theta[1] * ln_unit)
    elif name == "log-linear":
        moved[1] += theta[0] * ln_unit
    elif name == "exponential":
        moved[2] -= ln_unit
    assert law.value(moved, ln_c - ln_unit) == pytest.approx(expected, abs=1e-9)
    shown, again = law.outer_values(theta), law.outer_values(moved, ln_unit)
    assert {k: float(v) for k, v in again.items()} == pytest.approx({k: float(v) for k, v in shown.items()})
