"""What a law is: a parametric curve R(C), and how its parameters split into linear and other ones.

Given its `psi` (exponents, midpoints) every law here is linear in one or two coefficients:

    R = offset + coef_1 basis_1(C; psi) + coef_2 basis_2(C; psi)

Fits start from grids over `psi` on which the coefficients are solved for exactly, and the posterior
(`fitting.posterior`) integrates over them in closed form.
"""

from __future__ import annotations

import itertools
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

#: ln C that stands for zero compute, far below that of any real one: a law with a value before RL has it there.
LN_BEFORE_RL = -1000.0


class Law(Protocol):
    """A curve R(C) with k parameters `theta` [..., k], fitted in an inner form that has box bounds.

    `ln_c` is ln C, shape [n]; a point at zero compute is passed as `LN_BEFORE_RL`, and only to laws with
    `at_zero`. Fits count compute in a unit of their own, C / exp(ln_unit), in which the middle of the window
    is 1 (`fitting.parts`): so D of C^-B is a number near the scores for GPU-hours and FLOPs alike.
    """

    name: str
    #: What people read: "sigmoid", "power law in 1 - R".
    title: str
    equation: str
    source: str
    #: Names of the inner parameters, in order.
    inner: tuple[str, ...]
    #: Names of the parameters that users see; "A" among them if the law has an asymptote to report.
    outer: tuple[str, ...]
    #: How many inner parameters the reported fit estimates.
    n_free: int
    #: Whether the law has a value at zero compute.
    at_zero: bool

    def value(self, theta: Floats, ln_c: Floats) -> Floats:
        """R, shape [..., n]."""
        ...

    def value_and_jacobian(self, theta: Floats, ln_c: Floats) -> tuple[Floats, Floats]:
        """R, shape [..., n], and its derivatives by the inner parameters, shape [..., n, k]."""
        ...

    def bounds(self, ln_c: Floats) -> tuple[Floats, Floats]:
        """Lower and upper bounds of the inner parameters for points at `ln_c`, each shape [k]."""
        ...

    def starts(self, ln_c: Floats, rate: Floats, count: int) -> Floats:
        """The `count` best starting points of a deterministic grid, shape [count, k]."""
        ...

    def outer_values(self, theta: Floats, ln_unit: float = 0.0) -> dict[str, Floats]:
        """The parameters that users see, each shape [...], for fits in units of exp(`ln_unit`)."""
        ...

    def compute_for(self, theta: Floats, rate: float) -> Floats:
        """ln C at which the curve reaches `rate`, shape [...]; +inf where it never does."""
        ...

    # -- the split into linear and other parameters ------------------------------------------------

    #: The constant of the split, usually 0.
    offset: float
    #: Bounds of the coefficients, shape [p]; the last one is the asymptote where there is one.
    coef_low: Floats
    coef_high: Floats

    def box(self, ln_c: Floats) -> tuple[Floats, Floats]:
        """Bounds of psi for points at `ln_c`, each shape [q]; q may be 0."""
        ...

    def basis(self, psi: Floats, ln_c: Floats) -> Floats:
        """Shape [..., p, n] for psi [..., q]."""
        ...

    def ln_prior(self, psi: Floats) -> Floats:
        """ln of the prior density of psi up to a constant, shape [...]."""
        ...

    def join(self, coef: Floats, psi: Floats) -> Floats:
        """Inner parameters [..., k] from coefficients [..., p] and psi [..., q]."""
        ...

    def split(self, theta: Floats) -> tuple[Floats, Floats]:
        """Coefficients [..., p] and psi [..., q] of inner parameters: the inverse of `join`."""
        ...

    def allowed(self, coef: Floats) -> Bools:
        """Which coefficients [..., p] within their bounds are the law's, shape [...]."""
        ...


class Separable:
    """A law whose inner parameters are its coefficients and then psi, each in a box.

    A subclass gives the names and bounds, `basis`, and `basis_slopes`: derivatives by psi, [..., q, p, n].
    """

    offset = 0.0
    at_zero = False
    coef_low: Floats
    coef_high: Floats
    #: How many values of each psi the grid of starts has.
    grid_size = 24

    def basis(self, psi: Floats, ln_c: Floats) -> Floats:
        raise NotImplementedError

    def basis_slopes(self, psi: Floats, ln_c: Floats) -> Floats:
        raise NotImplementedError

    def box(self, ln_c: Floats) -> tuple[Floats, Floats]:
        raise NotImplementedError

    def ln_prior(self, psi: Floats) -> Floats:
        return np.zeros(psi.shape[:-1])

    def join(self, coef: Floats, psi: Floats) -> Floats:
        return np.concatenate([coef, psi], axis=-1)

    def split(self, theta: Floats) -> tuple[Floats, Floats]:
        p = len(self.coef_low)
        return theta[..., :p], theta[..., p:]

    def allowed(self, coef: Floats) -> Bools:
        return np.ones(coef.shape[:-1], dtype=bool)

    def value(self, theta: Floats, ln_c: Floats) -> Floats:
        coef, psi = self.split(theta)
        return np.asarray(self.offset + (coef[..., None] * self.basis(psi, ln_c)).sum(-2))

    def value_and_jacobian(self, theta: Floats, ln_c: Floats) -> tuple[Floats, Floats]:
        coef, psi = self.split(theta)
        basis = self.basis(psi, ln_c)
        value = self.offset + (coef[..., None] * basis).sum(-2)
        by_coef = np.swapaxes(basis, -1, -2)
        if not psi.shape[-1]:
            return value, by_coef
        by_psi = (coef[..., None, :, None] * self.basis_slopes(psi, ln_c)).sum(-2)
        return value, np.concatenate([by_coef, np.swapaxes(by_psi, -1, -2)], axis=-1)

    def bounds(self, ln_c: Floats) -> tuple[Floats, Floats]:
        low, high = self.box(ln_c)
        return np.concatenate([self.coef_low, low]), np.concatenate([self.coef_high, high])

    def starts(self, ln_c: Floats, rate: Floats, count: int) -> Floats:
        low, high = self.box(ln_c)
        psi = grid_of(low, high, self.grid_size)
        coef = np.clip(solve(self.basis(psi, ln_c), rate - self.offset), self.coef_low, self.coef_high)
        theta = self.join(coef, psi)
        sse = ((rate - self.value(theta, ln_c)) ** 2).sum(-1)
        return theta[np.argsort(sse, kind="stable")[:count]]


def grid_of(low: Floats, high: Floats, size: int) -> Floats:
    """Nodes of a regular grid with `size` values a dimension, shape [size^q, q]; one empty node for q = 0."""
    axes = [np.linspace(a, b, size) for a, b in zip(low, high, strict=True)]
    return np.array(list(itertools.product(*axes)), dtype=np.float64).reshape(size ** len(axes), len(axes))


def solve(basis: Floats, target: Floats) -> Floats:
    """Least-squares coefficients [J, p] of target [n] on basis [J, p, n]."""
    normal = basis @ np.swapaxes(basis, -1, -2)
    index = np.arange(normal.shape[-1])
    normal[..., index, index] += 1e-9 * np.maximum(normal[..., index, index], 1e-12)
    return np.asarray(np.linalg.solve(normal, (basis @ target)[..., None])[..., 0])


def ln_centre(ln_c: Floats) -> float:
    """Middle of the logarithmic range of the points with positive compute."""
    seen = ln_c[ln_c > LN_BEFORE_RL]
    return float(seen.min() + seen.max()) / 2.0
