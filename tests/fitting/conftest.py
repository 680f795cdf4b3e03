from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fitting import Curve

CURVES = Path(__file__).parents[2] / "rlcast" / "data" / "curves"


def sigmoid(compute, a: float, b: float, cmid: float, r0: float) -> np.ndarray:
    """The law as the paper writes it, in float64, independent of the code under test."""
    compute = np.asarray(compute, dtype=np.float64)
    with np.errstate(divide="ignore"):
        return r0 + (a - r0) / (1.0 + (cmid / compute) ** b)


@pytest.fixture
def law() -> Callable[..., np.ndarray]:
    return sigmoid


@pytest.fixture
def make_curve() -> Callable[..., Curve]:
    """A run of the sigmoid with AR(1) noise."""

    def make(compute, a=0.61, b=1.9, cmid=2500.0, r0=0.4, sd=0.0, rho=0.0, seed=0, **fields) -> Curve:
        compute = np.asarray(compute, dtype=np.float64)
        shocks = np.random.default_rng(seed).standard_normal(len(compute))
        noise = np.empty_like(shocks)
        noise[0] = shocks[0]
        for i in range(1, len(shocks)):
            noise[i] = rho * noise[i - 1] + np.sqrt(1 - rho**2) * shocks[i]
        return Curve(compute, np.clip(sigmoid(compute, a, b, cmid, r0) + sd * noise, 0, 1), **fields)

    return make


@pytest.fixture(scope="session")
def scalerl_8b() -> Curve:
    with (CURVES / "scalerl_8b_gpu_hours.csv").open() as file:
        rows = list(csv.DictReader(file))
    return Curve(
        np.array([float(r["compute"]) for r in rows]),
        np.array([float(r["pass_rate"]) for r in rows]),
        "gpu_hours",
        "8B",
    )
