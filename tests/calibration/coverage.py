"""How often the intervals are right, by simulation: prints one row a cell.

    python tests/calibration/coverage.py [--draws 200] [--law auto] [--jobs 2]

Runs follow the sigmoid. Their noise has three parts: what training does (AR(1), sd 0.0035), sampling (1,000
prompts of unequal difficulty, the same at every checkpoint, 16 samples each), and, in the rows marked
"outliers", a score that is off by 0.02 in 3% of the evaluations. Evaluations come as often as in the published
runs of that size. A's interval is held against the true A; R(100k) against a fresh evaluation at 100,000
GPU-hours. "plain" is a residual bootstrap (resample residuals, refit, percentiles) of the same least-squares
fits, as a reference. The last two columns are the coverage among runs of which A was called identified.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from simulation import ar1, machine

from fitting import LAWS, Curve, ForecastOptions, forecast
from fitting.batch import Problem, fit_batch
from fitting.parts import series_of
from fitting.posterior import Series
from fitting.windows import log_compute

#: A, B, Cmid (GPU-hours), R0, GPU-hours from one evaluation to the next.
TRUTHS = (
    (0.610, 1.92, 2_542.0, 0.40, 150.0),
    (0.645, 1.70, 10_900.0, 0.40, 1_350.0),
    (0.520, 4.50, 2_000.0, 0.35, 150.0),
    (0.700, 1.00, 4_242.0, 0.50, 300.0),
)
ENDS = (4_000.0, 8_000.0, 16_000.0, 50_000.0)
AUTOCORRELATIONS = (0.0, 0.3, 0.6, 0.8)
TRAINING_SD, PROMPTS, SAMPLES = 0.0035, 1_000, 16
FAR = 1e5


def law(compute: np.ndarray, truth: tuple[float, ...]) -> np.ndarray:
    a, b, cmid, r0, _ = truth
    return r0 + (a - r0) / (1.0 + (cmid / compute) ** b)


def evaluate(rng: np.random.Generator, rate: np.ndarray, difficulty: np.ndarray) -> np.ndarray:
    """Mean pass rates measured on the same prompts: prompt i solves with the probability that moves its own
    logit so that the mean over prompts is `rate`."""
    shift = (
        np.log(rate / (1 - rate)) * 1.7
    )  # widely spread prompts: the mean's logit moves less than each one's
    for _ in range(30):
        p = 1 / (1 + np.exp(-(shift[:, None] + difficulty)))
        shift += (rate - p.mean(1)) / np.maximum((p * (1 - p)).mean(1), 1e-6)
    p = 1 / (1 + np.exp(-(shift[:, None] + difficulty)))
    return rng.binomial(SAMPLES, p).mean(1) / SAMPLES


def simulate(
    rng: np.random.Generator, truth: tuple[float, ...], end: float, rho: float, outliers: bool
) -> tuple[Curve, float]:
    """A run seen to `end`, and a later evaluation at 100,000 GPU-hours."""
    n = int(np.clip((end - 1_500.0) / truth[-1], 8, 120))
    compute = np.append(np.linspace(1_500.0, end, n), FAR)
    difficulty = rng.normal(0.0, 2.5, PROMPTS)
    trained = np.append(ar1(rng, n, rho), rng.standard_normal())
    rate = np.clip(law(compute, truth) + TRAINING_SD * trained, 0.01, 0.99)
    measured = evaluate(rng, rate, difficulty)
    if outliers:
        measured += np.where(rng.random(n + 1) < 0.03, rng.choice([-0.02, 0.02], n + 1), 0.0)
    return Curve(compute[:n], np.clip(measured[:n], 0, 1)), float(measured[n])


def plain_interval(curve: Curve, rng: np.random.Generator) -> tuple[float, float]:
    """The 90% percentile interval for A of a plain residual bootstrap with 200 replicates."""
    sigmoid = LAWS["sigmoid"]
    own, _ = series_of(sigmoid, Series(log_compute(curve.compute), curve.pass_rate, np.ones(len(curve))))
    starts = sigmoid.starts(own.ln_c, own.rate, 4)
    low, high = sigmoid.bounds(own.ln_c)

    def fit(rates: np.ndarray, begin: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        box = (np.broadcast_to(x, begin.shape) for x in (low, high))
        return fit_batch(Problem(sigmoid, own.ln_c, rates, *box), begin)

    found, sse = fit(np.repeat(own.rate[None], len(starts), 0), starts)
    theta = found[sse.argmin()]
    fitted = sigmoid.value(theta, own.ln_c)
    rates = fitted + rng.choice(own.rate - fitted, (200, len(own)))
    found, _ = fit(rates, np.repeat(theta[None], 200, 0))
    low_a, high_a = np.quantile(sigmoid.outer_values(found)["A"], [0.05, 0.95])
    return float(low_a), float(high_a)


def cell(job: tuple[tuple[float, ...], float, float, bool, int, str]) -> str:
    truth, end, rho, outliers, draws, name = job
    rng = np.random.default_rng([int(end), int(10 * rho), int(1000 * truth[0]), outliers])
    hits = dict.fromkeys(("A", "R", "plain", "identified", "A_identified", "R_identified"), 0)
    n = 0
    for _ in range(draws):
        curve, later = simulate(rng, truth, end, rho, outliers)
        n = len(curve)
        found = forecast(curve, ForecastOptions(law=name, at=(FAR,), replicates=500)).to_dict()
        a, r = found["parameters"]["A"], found["at"][0]
        in_a, in_r = a["low"] <= truth[0] <= a["high"], r["low"] <= later <= r["high"]
        low, high = plain_interval(curve, rng)
        known = found["verdict"]["state"] == "identified"
        for key, value in (
            ("A", in_a),
            ("R", in_r),
            ("plain", low <= truth[0] <= high),
            ("identified", known),
            ("A_identified", known and in_a),
            ("R_identified", known and in_r),
        ):
            hits[key] += bool(value)
    known_n = hits["identified"]
    inside = [f"{hits[k] / known_n:>5.0%}" if known_n else "    –" for k in ("A_identified", "R_identified")]
    return (
        f"{truth[0]:.3f} {truth[2]:>7,.0f} {end:>7,.0f} {n:>4} {rho:>4.1f} {'yes' if outliers else ' no':>8} "
        f"{hits['A'] / draws:>8.0%} {hits['R'] / draws:>8.0%} {hits['plain'] / draws:>8.0%} "
        f"{known_n / draws:>11.0%} {inside[0]:>8} {inside[1]:>8}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=200, help="simulated runs a cell")
    parser.add_argument("--law", default="auto", help="law of the forecasts")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    options = parser.parse_args()
    jobs = [
        (truth, end, rho, outliers, options.draws, options.law)
        for truth in TRUTHS
        for end in ENDS
        for rho, outliers in (*((r, False) for r in AUTOCORRELATIONS), (0.3, True))
    ]
    print(f"law {options.law}, {options.draws} runs a cell; {machine()}")
    print("    A    Cmid     end    n  rho outliers covers A  R(100k)  plain A  identified  A if id  R if id")
    with ProcessPoolExecutor(options.jobs) as pool:
        for line in pool.map(cell, jobs):
            print(line, flush=True)


if __name__ == "__main__":
    main()
