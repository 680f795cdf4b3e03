"""Speed of forecasts, side by side in one process on one core.

    python benchmarks/fitting_speed.py

- A band of 1,000 replicates at 100 points: batched refits against 1,000 fits by lmfit in a loop, done twice: from the
  true parameters with lmfit's fastest method ("leastsq"), and as the reported fit does each one, from several starts
  within bounds ("least_squares").
- A whole forecast with its band, and 200 runs compared with a baseline.
- Peak memory as replicates grow.
"""

from __future__ import annotations

import os
import resource

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import platform
import time
import warnings
from collections.abc import Callable

import lmfit
import numpy as np

from fitting import LAWS, Curve, ForecastOptions, compare, forecast
from fitting.batch import Problem, fit_batch

LAW = LAWS["sigmoid"]
REPLICATES, POINTS = 1000, 100
COMPUTE = np.geomspace(300.0, 30_000.0, POINTS)
LN_C = np.log(COMPUTE)
TRUTH = np.array([0.4, 0.35, np.log(2500.0), np.log(1.9), 0.0])


def timed(work: Callable[[], np.ndarray]) -> tuple[np.ndarray, float]:
    start = time.perf_counter()
    return work(), time.perf_counter() - start


def batched(rates: np.ndarray) -> np.ndarray:
    low, high = (np.broadcast_to(b, (len(rates), 5)) for b in LAW.bounds(LN_C))
    theta, _ = fit_batch(Problem(LAW, LN_C, rates, low, high), np.repeat(TRUTH[None], len(rates), 0))
    return LAW.outer_values(theta)["A"]


def residual_of(rate: np.ndarray) -> Callable[[lmfit.Parameters], np.ndarray]:
    def residual(p: lmfit.Parameters) -> np.ndarray:
        return rate - (p["R0"] + (p["A"] - p["R0"]) / (1 + np.exp(-p["B"] * (LN_C - p["m"]))))

    return residual


def fast_loop(rates: np.ndarray) -> np.ndarray:
    start = lmfit.create_params(A=0.6, R0=0.4, B=1.9, m=np.log(2500.0))
    return np.array(
        [lmfit.minimize(residual_of(r), start, method="leastsq").params["A"].value for r in rates]
    )


def careful_loop(rates: np.ndarray) -> np.ndarray:
    found = []
    for rate in rates:
        fits = []
        for m in (1_000.0, 2_500.0, 6_000.0, 15_000.0):
            start = lmfit.Parameters()
            start.add("A", value=0.6, min=0, max=1)
            start.add("R0", value=0.4, min=0, max=1)
            start.add("B", value=1.5, min=0.2, max=10)
            start.add("m", value=np.log(m), min=LN_C[0] - 5, max=LN_C[-1] + 3.4)
            fits.append(lmfit.minimize(residual_of(rate), start, method="least_squares"))
        found.append(min(fits, key=lambda fit: fit.chisqr).params["A"].value)
    return np.array(found)


def refits() -> None:
    rates = LAW.value(TRUTH[None], LN_C) + np.random.default_rng(0).normal(0, 0.004, (REPLICATES, POINTS))
    batched(rates[:10])
    ours, batch_s = timed(lambda: batched(rates))
    theirs, fast_s = timed(lambda: fast_loop(rates))
    part = REPLICATES // 10
    _, careful_s = timed(lambda: careful_loop(rates[:part]))
    print(f"{REPLICATES} refits of {POINTS} points: batched {batch_s:.3f} s")
    print(f"  lmfit, from the truth, unbounded: {fast_s:.2f} s, {fast_s / batch_s:.0f} times", end="")
    print(f"; largest difference in A {np.abs(ours - theirs).max():.1e}")
    careful_s *= REPLICATES / part
    times = careful_s / batch_s
    print(f"  lmfit, four starts within bounds: {careful_s:.1f} s, {times:.0f} times (from {part} of them)")


def whole_forecasts() -> None:
    rng = np.random.default_rng(1)
    curves = []
    for i in range(200):
        rate = 0.4 + rng.uniform(0.15, 0.25) / (1 + (rng.uniform(1_500, 4_000) / COMPUTE[::2]) ** 1.9)
        curves.append(Curve(COMPUTE[::2], rate + rng.normal(0, 0.004, POINTS // 2), name=f"run{i}"))
    full = Curve(COMPUTE, LAW.value(TRUTH, LN_C) + rng.normal(0, 0.004, POINTS))
    forecast(full).to_dict()
    for law in ("auto", "sigmoid"):
        start = time.perf_counter()
        for seed in range(5):
            forecast(full, ForecastOptions(law=law, seed=seed)).to_dict()
        print(f"a whole forecast of {POINTS} points, law {law}: {(time.perf_counter() - start) / 5:.3f} s")
    for law, label in (("sigmoid", "one law"), ("auto", "auto")):
        start = time.perf_counter()
        found = [forecast(curve, ForecastOptions(law=law)) for curve in curves]
        for candidate in found[1:]:
            compare(candidate, found[0])
        spent = time.perf_counter() - start
        print(f"200 runs of {POINTS // 2} points forecast and compared with one, {label}: {spent:.1f} s")


def memory() -> None:
    for replicates in (1_000, 20_000):
        curve = Curve(COMPUTE, np.clip(LAW.value(TRUTH, LN_C), 0, 1))
        forecast(curve, ForecastOptions(law="sigmoid", replicates=replicates)).to_dict()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"peak memory of the process after {replicates:,} replicates: {peak:.0f} MiB")


def main() -> None:
    warnings.simplefilter("ignore")
    print(f"{platform.machine()}, {os.cpu_count()} cores, one used; Python {platform.python_version()}")
    refits()
    whole_forecasts()
    memory()


if __name__ == "__main__":
    main()
