"""The ScaleRL sigmoid: R(C) = R0 + (A - R0) / (1 + (Cmid / C)^B).

Source: "The Art of Scaling Reinforcement Learning Compute for LLMs", arXiv 2510.13786, equation 1.
It is a logistic in ln C with slope B and centre ln Cmid.

The inner form is (R0, g, ln Cmid, ln B, ln s) with A = R0 + g (1 - R0): then R0 < A <= 1 is the box
0 < g <= 1. The shape s raises the logistic to a power (Richards 1959, J. Exp. Bot. 10: the generalised
logistic). The law is s = 1, where fits hold it; the bands of `auto` also spread over `SHAPES`, because a run
need not approach its asymptote as it took off.
"""

from __future__ import annotations

import itertools

import numpy as np

from fitting.laws.base import LN_BEFORE_RL, Bools, Floats

#: Bounds of B. The paper's values lie between 1.1 and 4.6.
MIN_B, MAX_B = 0.2, 10.0
#: How far beyond the last point Cmid may lie, as a factor: farther out only one number is identified.
MAX_CMID_FACTOR = 30.0
_MIN_GAIN = 1e-6
#: Values of ln s that `auto` spreads over.
SHAPES = np.array([-1.2, -0.6, 0.0, 0.6, 1.2])


class Sigmoid:
    name = "sigmoid"
    title = "sigmoid"
    equation = "R(C) = R0 + (A - R0) / (1 + (Cmid / C)^B)"
    source = "arXiv 2510.13786, equation 1"
    inner: tuple[str, ...] = ("R0", "g", "ln_Cmid", "ln_B", "ln_s")
    outer: tuple[str, ...] = ("A", "B", "Cmid", "R0")
    n_free = 4
    at_zero = True
    offset = 0.0
    #: R0 and A.
    coef_low = np.array([0.0, 0.0])
    coef_high = np.array([1.0, 1.0])

    def value(self, theta: Floats, ln_c: Floats) -> Floats:
        r0, gain, ln_cmid, ln_b, ln_s = (theta[..., i, None] for i in range(5))
        share = _power(_logistic(np.exp(ln_b) * (ln_c - ln_cmid)), np.exp(ln_s))
        return np.asarray(r0 + gain * (1.0 - r0) * share)

    def value_and_jacobian(self, theta: Floats, ln_c: Floats) -> tuple[Floats, Floats]:
        r0, gain, ln_cmid, ln_b, ln_s = (theta[..., i, None] for i in range(5))
        b, s = np.exp(ln_b), np.exp(ln_s)
        z = b * (ln_c - ln_cmid)
        logistic = _logistic(z)
        share = _power(logistic, s)
        room = 1.0 - r0
        slope = gain * room * s * share * (1.0 - logistic)
        by_shape = gain * room * s * share * np.log(np.maximum(logistic, _TINY))
        jacobian = np.stack([1.0 - gain * share, room * share, -b * slope, z * slope, by_shape], axis=-1)
        return r0 + gain * room * share, jacobian

    def bounds(self, ln_c: Floats) -> tuple[Floats, Floats]:
        seen = ln_c[ln_c > LN_BEFORE_RL]
        low = np.array([0.0, _MIN_GAIN, seen.min() - 5.0, np.log(MIN_B), 0.0])
        high = np.array([1.0 - 1e-6, 1.0, seen.max() + np.log(MAX_CMID_FACTOR), np.log(MAX_B), 0.0])
        return low, high

    def starts(self, ln_c: Floats, rate: Floats, count: int) -> Floats:
        """For each (Cmid, B) of a grid, R0 and A are a linear least-squares problem; the best are kept."""
        seen = ln_c[ln_c > LN_BEFORE_RL]
        grid = itertools.product(
            np.linspace(seen.min() - 0.5, seen.max() + 2.0, 14), np.log([0.6, 1.2, 2.0, 3.5])
        )
        centres, ln_bs = (np.array(axis) for axis in zip(*grid, strict=True))
        share = _logistic(np.exp(ln_bs)[:, None] * (ln_c - centres[:, None]))
        r0, a = _solve_line(share, rate)
        sse = ((rate - r0[:, None] - (a - r0)[:, None] * share) ** 2).sum(-1)
        best = np.argsort(sse, kind="stable")[:count]
        gain = np.clip((a - r0) / (1.0 - r0), 1e-3, 1.0)
        return np.stack([r0, gain, centres, ln_bs, np.zeros_like(r0)], axis=-1)[best]

    def outer_values(self, theta: Floats, ln_unit: float = 0.0) -> dict[str, Floats]:
        """A, B, Cmid, R0. Of another shape, Cmid is where half of the gain is reached, and B gives the slope
        there: of the law itself these are its own parameters."""
        r0, gain, ln_cmid, ln_b, ln_s = (theta[..., i] for i in range(5))
        half = 0.5 ** np.exp(-ln_s)
        b = np.exp(ln_b)
        return {
            "A": r0 + gain * (1.0 - r0),
            "B": 2.0 * np.exp(ln_s) * (1.0 - half) * b,
            "Cmid": np.exp(ln_cmid + np.log(half / (1.0 - half)) / b + ln_unit),
            "R0": r0,
        }

    def compute_for(self, theta: Floats, rate: float) -> Floats:
        r0 = theta[..., 0]
        with np.errstate(divide="ignore", invalid="ignore"):
            share = (rate - r0) / (theta[..., 1] * (1.0 - r0))
            logistic = share ** np.exp(-theta[..., 4])
            inside = theta[..., 2] + np.log(logistic / (1.0 - logistic)) / np.exp(theta[..., 3])
        return np.where(share >= 1.0, np.inf, np.where(share <= 0.0, -np.inf, inside))

    # -- the split: R0 and A over (ln C50, ln B50, ln s), half-gain compute and slope there --------------

    def box(self, ln_c: Floats) -> tuple[Floats, Floats]:
        low, high = self.bounds(ln_c)
        return low[2:], high[2:]

    def basis(self, psi: Floats, ln_c: Floats) -> Floats:
        ln_cmid, ln_b, ln_s = (x[..., None] for x in _inner_of(psi))
        share = _logistic(np.exp(ln_b) * (ln_c - ln_cmid))
        if np.any(ln_s != 0.0):
            share = _power(share, np.exp(ln_s))
        return np.stack([1.0 - share, share], axis=-2)

    def ln_prior(self, psi: Floats) -> Floats:
        """B log-normal around 2 by a factor of e: the paper's values lie between 1.1 and 4.6."""
        return np.asarray(-0.5 * ((psi[..., 1] - np.log(2.0)) / 1.0) ** 2)

    def join(self, coef: Floats, psi: Floats) -> Floats:
        r0, a = coef[..., 0], coef[..., 1]
        gain = np.clip((a - r0) / (1.0 - np.minimum(r0, 1.0 - 1e-6)), _MIN_GAIN, 1.0)
        return np.stack([np.minimum(r0, 1.0 - 1e-6), gain, *_inner_of(psi)], axis=-1)

    def split(self, theta: Floats) -> tuple[Floats, Floats]:
        outer = self.outer_values(theta)
        psi = [np.log(outer["Cmid"]), np.log(outer["B"]), theta[..., 4]]
        return np.stack([outer["R0"], outer["A"]], axis=-1), np.stack(psi, axis=-1)

    def allowed(self, coef: Floats) -> Bools:
        return np.asarray(coef[..., 0] < coef[..., 1])


_TINY = 1e-300


def _inner_of(psi: Floats) -> tuple[Floats, Floats, Floats]:
    """(ln Cmid, ln B, ln s) of the logistic whose half-gain compute and slope there are psi's."""
    s = np.exp(psi[..., 2])
    half = 0.5 ** (1.0 / s)
    ln_b = psi[..., 1] - np.log(2.0 * s * (1.0 - half))
    return psi[..., 0] - np.log(half / (1.0 - half)) / np.exp(ln_b), ln_b, psi[..., 2]


def _logistic(z: Floats) -> Floats:
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * z)))


def _power(share: Floats, exponent: Floats) -> Floats:
    return np.asarray(np.exp(exponent * np.log(np.maximum(share, _TINY))))


def _solve_line(share: Floats, rate: Floats) -> tuple[Floats, Floats]:
    """Least squares of rate [n] on share [m, n]: values at share 0 (R0) and 1 (A), in [0, 1], shape [m]."""
    mean_s, mean_r = share.mean(-1), rate.mean()
    centred = share - mean_s[:, None]
    slope = (centred * (rate - mean_r)).sum(-1) / np.maximum((centred**2).sum(-1), 1e-12)
    r0 = np.clip(mean_r - slope * mean_s, 0.0, 0.999)
    return r0, np.clip(mean_r + slope * (1.0 - mean_s), r0 + 1e-3, 1.0)
