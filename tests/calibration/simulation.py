"""What the calibration scripts share: noise as runs have it, and a line that names the machine."""

from __future__ import annotations

import os
import platform

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np


def ar1(rng: np.random.Generator, n: int, rho: float) -> np.ndarray:
    """A stationary AR(1) series of standard deviation 1, shape [n]."""
    shocks = rng.standard_normal(n)
    noise = np.empty(n)
    noise[0] = shocks[0]
    for i in range(1, n):
        noise[i] = rho * noise[i - 1] + np.sqrt(1 - rho**2) * shocks[i]
    return noise


def machine() -> str:
    return f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, numpy {np.__version__}"
