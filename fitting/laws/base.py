"""What a law is: a parametric curve that can be fitted in batches."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: ln C that stands for zero compute, far below that of any real one: every law has its value before RL there.
LN_BEFORE_RL = -1000.0


class Law(Protocol):
    """A curve R(C) with k parameters, fitted in an inner form that has box bounds.

    Inner parameters `theta` have shape [..., k]; `ln_c` is ln C, shape [n]. A point at zero compute is
    passed as `LN_BEFORE_RL`.
    """

    name: str
    equation: str
    source: str
    #: Names of the inner parameters, in order.
    inner: tuple[str, ...]
    #: Names of the parameters that users see.
    outer: tuple[str, ...]
    #: How many inner parameters the reported fit estimates.
    n_free: int

    def value(self, theta: Floats, ln_c: Floats) -> Floats:
        """R, shape [..., n]."""
        ...

    def value_and_jacobian(self, theta: Floats, ln_c: Floats) -> tuple[Floats, Floats]:
        """R, shape [..., n], and its derivatives by the inner parameters, shape [..., n, k]."""
        ...

    def bounds(self, ln_c: Floats) -> tuple[Floats, Floats]:
        """Lower and upper bounds of the inner parameters for points at `ln_c`, each shape [k]."""
        ...

    def shapes(self, count: int) -> Floats:
        """Variants of the law that bands try, shape [count, k]: only the entries that a fit holds fixed
        matter. The first is the law itself."""
        ...

    def starts(self, ln_c: Floats, rate: Floats, count: int) -> Floats:
        """The `count` best starting points of a deterministic grid, shape [count, k]."""
        ...

    def outer_values(self, theta: Floats) -> dict[str, Floats]:
        """The parameters that users see, each shape [...]."""
        ...

    def compute_for(self, theta: Floats, rate: float) -> Floats:
        """ln C at which the curve reaches `rate`, shape [...]; +inf where it never does."""
        ...
