"""How often the gate is wrong, by simulation.

    python tests/calibration/gate.py [--draws 200]

Candidate and baseline are recipes with three runs each. A run's asymptote differs from its recipe's by a normal
of sd 0.0075, as published repeats do. The candidate's A lies above or below the baseline's by the given number of
margins (0.02). "below by 2 margins" should fail: a pass is a false accept. "above by 2" and "equal" should pass: a
fail is a false reject. In between, at one margin below, the gate stands on its edge and should say so.
"""

from __future__ import annotations

import argparse
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

from simulation import ar1, machine  # first: it limits threads

# isort: split
import numpy as np

from fitting import Curve, ForecastOptions, forecast_recipe, gate_decision

MARGIN, SEED_SD = 0.02, 0.0075
#: Windows: to about 6 x Cmid, where A is identified, and to 1.2 x Cmid, where it is not.
WINDOWS = {"identified": np.linspace(600.0, 16_000.0, 60), "not yet": np.linspace(600.0, 3_000.0, 20)}
B, CMID, R0, A = 1.9, 2_500.0, 0.40, 0.61


def recipe(rng: np.random.Generator, a: float, compute: np.ndarray, law: str):
    runs = []
    for i in range(3):
        top = a + rng.normal(0, SEED_SD)
        noise = 0.0035 * ar1(rng, len(compute), 0.5) + rng.normal(0, 0.002, len(compute))
        rate = R0 + (top - R0) / (1 + (CMID / compute) ** B) + noise
        runs.append(Curve(compute, np.clip(rate, 0, 1), name=f"run{i}"))
    return forecast_recipe(runs, ForecastOptions(law=law, replicates=500))


def row(job: tuple[str, float, int, str]) -> str:
    window, margins, draws, law = job
    rng = np.random.default_rng([len(window), int(10 * margins) + 100])
    compute = WINDOWS[window]
    found: Counter[str] = Counter()
    for _ in range(draws):
        candidate = recipe(rng, A + margins * MARGIN, compute, law)
        found[gate_decision(candidate, recipe(rng, A, compute, law), MARGIN).verdict] += 1
    shares = "  ".join(f"{found[verdict] / draws:>12.1%}" for verdict in ("pass", "inconclusive", "fail"))
    return f"{window:<12} {margins:>+7.1f}   {shares}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=200, help="pairs of recipes a row")
    parser.add_argument("--law", default="auto", help="law of the forecasts")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    options = parser.parse_args()
    jobs = [(w, m, options.draws, options.law) for w in WINDOWS for m in (-3.0, -2.0, -1.0, 0.0, 2.0)]
    print(f"law {options.law}, {options.draws} pairs a row; {machine()}")
    print("window       margins           pass  inconclusive          fail")
    with ProcessPoolExecutor(options.jobs) as pool:
        for line in pool.map(row, jobs):
            print(line, flush=True)


if __name__ == "__main__":
    main()
