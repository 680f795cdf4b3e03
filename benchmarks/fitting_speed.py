"""A band of 1,000 replicates against 1,000 lmfit fits in a loop, and a whole forecast, in one process.

python benchmarks/fitting_speed.py
"""

from __future__ import annotations

import time
import warnings

import lmfit
import numpy as np

from fitting import LAWS, Curve, ForecastOptions, forecast
from fitting.batch import Problem, fit_batch

LAW = LAWS["sigmoid"]
REPLICATES, POINTS = 1000, 100


def loop(ln_c: np.ndarray, rates: np.ndarray) -> np.ndarray:
    found = []
    for rate in rates:

        def residual(p: lmfit.Parameters, rate: np.ndarray = rate) -> np.ndarray:
            return rate - (p["R0"] + (p["A"] - p["R0"]) / (1 + np.exp(-p["B"] * (ln_c - p["m"]))))

        start = lmfit.create_params(A=0.6, R0=0.4, B=1.9, m=np.log(2500.0))
        found.append(lmfit.minimize(residual, start, method="leastsq").params["A"].value)
    return np.array(found)


def main() -> None:
    warnings.simplefilter("ignore")
    compute = np.geomspace(300.0, 30_000.0, POINTS)
    ln_c = np.log(compute)
    theta = np.array([0.4, 0.35, np.log(2500.0), np.log(1.9), 0.0])
    rates = LAW.value(theta[None], ln_c) + np.random.default_rng(0).normal(0, 0.004, (REPLICATES, POINTS))
    low, high = (np.broadcast_to(b, (REPLICATES, 5)) for b in LAW.bounds(ln_c))
    problem = Problem(LAW, ln_c, rates, low, high)
    t = time.perf_counter()
    batch, _ = fit_batch(problem, np.repeat(theta[None], REPLICATES, 0))
    batch_s = time.perf_counter() - t
    t = time.perf_counter()
    one_by_one = loop(ln_c, rates)
    loop_s = time.perf_counter() - t
    gap = np.abs(LAW.outer_values(batch)["A"] - one_by_one).max()
    print(f"{REPLICATES} refits of {POINTS} points: batch {batch_s:.3f} s, loop {loop_s:.2f} s, ", end="")
    print(f"{loop_s / batch_s:.0f} times; largest difference in A {gap:.1e}")
    curve = Curve(compute, np.clip(rates[0], 0, 1))
    forecast(curve)
    t = time.perf_counter()
    for seed in range(5):
        forecast(curve, ForecastOptions(seed=seed)).to_dict()
    print(f"a whole forecast of {POINTS} points, 1,000 replicates: {(time.perf_counter() - t) / 5:.3f} s")


if __name__ == "__main__":
    main()
