"""Same points, options and seed: the same JSON bytes in any number of processes, with any number of threads."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]


def digest(seed: int) -> str:
    """SHA-256 of the JSON of forecasts of a curve, by every method, at full precision of the points."""
    from fitting import METHODS, Curve, ForecastOptions, forecast

    compute = np.geomspace(300.0, 30_000.0, 60)
    noise = np.random.default_rng(seed).normal(0, 0.004, 60)
    curve = Curve(compute, 0.4 + 0.21 / (1 + (2_500 / compute) ** 1.9) + noise)
    hashed = hashlib.sha256()
    for law in METHODS:
        found = forecast(curve, ForecastOptions(law=law, at=(1e5,), reach=(0.6,), seed=seed)).to_dict()
        hashed.update(json.dumps(found).encode())
    return hashed.hexdigest()


@pytest.mark.slow
def test_the_number_of_processes_does_not_matter():
    here = [digest(seed) for seed in range(3)]
    spawn = multiprocessing.get_context("spawn")
    for workers in (1, 3):
        with ProcessPoolExecutor(workers, mp_context=spawn) as pool:
            assert list(pool.map(digest, range(3))) == here


@pytest.mark.slow
def test_the_number_of_threads_does_not_matter():
    code = "from tests.fitting.test_determinism import digest; print(digest(7))"
    found = set()
    for threads in ("1", "2", "4"):
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "OPENBLAS_NUM_THREADS": threads,
            "OMP_NUM_THREADS": threads,
        }
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        found.add(done.stdout.strip())
    assert len(found) == 1
