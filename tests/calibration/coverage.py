"""How often the intervals are right, by simulation: prints one row a cell.

    python tests/calibration/coverage.py [--draws 100]

Runs follow the sigmoid with AR(1) noise, evaluated as the paper's runs were. "plain" is a residual bootstrap
(resample residuals, refit, percentiles) of the same fits, as a reference.
"""

from __future__ import annotations

import argparse

import numpy as np

from fitting import Curve, ForecastOptions, forecast
from fitting.batch import Problem, fit_batch
from fitting.forecast import log_compute

#: A, B, Cmid (GPU-hours), R0: the published 8B run and the 14k-length run.
TRUTHS = ((0.645, 1.70, 10_900.0, 0.40), (0.610, 1.92, 2_542.0, 0.40))
ENDS = (4_000.0, 8_000.0, 16_000.0, 50_000.0)
NOISE_SD = 0.004


def simulate(rng: np.random.Generator, truth: tuple[float, ...], end: float, rho: float) -> Curve:
    a, b, cmid, r0 = truth
    compute = np.linspace(1_500.0, end, int(np.clip((end - 1_500) / 600, 8, 36)))
    shocks = rng.standard_normal(len(compute))
    noise = np.empty_like(shocks)
    noise[0] = shocks[0]
    for i in range(1, len(shocks)):
        noise[i] = rho * noise[i - 1] + np.sqrt(1 - rho**2) * shocks[i]
    return Curve(compute, np.clip(r0 + (a - r0) / (1 + (cmid / compute) ** b) + NOISE_SD * noise, 0, 1))


def plain_interval(
    curve: Curve, theta: np.ndarray, law: object, rng: np.random.Generator
) -> tuple[float, float]:
    """The 90% percentile interval for A of a plain residual bootstrap with 300 replicates."""
    ln_c = log_compute(curve.compute)
    fitted = law.value(theta, ln_c)  # type: ignore[attr-defined]
    residuals = curve.pass_rate - fitted
    rates = fitted + rng.choice(residuals, (300, len(residuals)))
    low, high = (np.broadcast_to(x, (300, len(theta))) for x in law.bounds(ln_c))  # type: ignore[attr-defined]
    found, _ = fit_batch(Problem(law, ln_c, rates, low, high), np.repeat(theta[None], 300, 0))  # type: ignore[arg-type]
    return tuple(np.quantile(law.outer_values(found)["A"], [0.05, 0.95]))  # type: ignore[attr-defined,return-value]


def cell(truth: tuple[float, ...], end: float, rho: float, draws: int) -> str:
    rng = np.random.default_rng([int(end), int(10 * rho), int(1000 * truth[0])])
    a, b, cmid, r0 = truth
    at_100k = r0 + (a - r0) / (1 + (cmid / 1e5) ** b)
    hits = {"A": 0, "R": 0, "plain": 0, "identified": 0, "A_identified": 0}
    for _ in range(draws):
        curve = simulate(rng, truth, end, rho)
        f = forecast(curve, ForecastOptions(at=(1e5,), replicates=400))
        found = f.to_dict()
        p, q = found["parameters"]["A"], found["at"][0]
        inside = p["low"] <= a <= p["high"]
        low, high = plain_interval(curve, f.theta, f.law, rng)
        hits["A"] += inside
        hits["R"] += q["low"] <= at_100k <= q["high"]
        hits["plain"] += low <= a <= high
        if found["verdict"]["state"] == "identified":
            hits["identified"] += 1
            hits["A_identified"] += inside
    known = f"{hits['A_identified'] / hits['identified']:>6.0%}" if hits["identified"] else "     –"
    return (
        f"{a:.3f} {cmid:>7,.0f} {end:>7,.0f} {rho:>4.1f} {hits['A'] / draws:>7.0%} {hits['R'] / draws:>8.0%} "
        f"{hits['plain'] / draws:>7.0%} {hits['identified'] / draws:>11.0%} {known:>7}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=100, help="simulated runs a cell")
    draws = parser.parse_args().draws
    print("    A    Cmid     end  rho  covers A  R(100k)  plain A  identified  A if identified")
    for truth in TRUTHS:
        for end in ENDS:
            for rho in (0.0, 0.3, 0.6, 0.8):
                print(cell(truth, end, rho, draws), flush=True)


if __name__ == "__main__":
    main()
