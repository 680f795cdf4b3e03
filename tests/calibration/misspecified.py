"""Coverage when another law made the run: 90% intervals of the score at twice the compute, under `auto`.

    python tests/calibration/misspecified.py [--draws 100]

Each row is a law that made the runs (40 points from 1,000 to 20,000 GPU-hours, AR(1) noise of 0.5 and sd 0.0035,
and white noise of sd 0.002), with several settings of its parameters. "sigmoid" beside it takes the sigmoid as given.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor

from simulation import ar1, machine  # first: it limits threads

# isort: split
import numpy as np

from fitting import Curve, ForecastOptions, forecast

COMPUTE = np.geomspace(1_000.0, 20_000.0, 40)
TWICE = 40_000.0
TRUTHS = {
    "saturating-power": [lambda c: 0.62 - 18.0 * c**-0.65, lambda c: 0.8 - 3.0 * c**-0.3],
    "power": [lambda c: 1 - 1.6 * c**-0.13, lambda c: 1 - 2.2 * c**-0.15],
    "log-linear": [lambda c: 0.05 * np.log(c) - 0.1, lambda c: 0.02 * np.log(c) + 0.3],
    "exponential": [lambda c: 0.6 - 0.3 * np.exp(-c / 6_000.0), lambda c: 0.7 - 0.3 * np.exp(-c / 20_000.0)],
    "random walk": [None],
}


def run_of(name: str, index: int, rng: np.random.Generator) -> tuple[np.ndarray, float]:
    """Pass rates at COMPUTE, and the law's at twice the last compute."""
    if name == "random walk":
        ln_c = np.log(np.append(COMPUTE, TWICE))
        steps = rng.standard_normal(len(ln_c) - 1) * 0.03 * np.sqrt(np.diff(ln_c))
        level = np.clip(0.45 + np.concatenate([[0.0], np.cumsum(steps)]), 0.02, 0.98)
        truth, later = level[:-1], float(level[-1])
    else:
        law = TRUTHS[name][index]
        truth, later = law(COMPUTE), float(law(TWICE))
    noise = 0.0035 * ar1(rng, len(COMPUTE), 0.5) + rng.normal(0, 0.002, len(COMPUTE))
    return np.clip(truth + noise, 0, 1), later


def row(job: tuple[str, int, int]) -> str:
    name, index, draws = job
    rng = np.random.default_rng([index, sum(map(ord, name))])
    inside, widths, errors = (
        {"auto": 0, "sigmoid": 0},
        {"auto": [], "sigmoid": []},
        {"auto": [], "sigmoid": []},
    )
    for _ in range(draws):
        rate, later = run_of(name, index, rng)
        for law in inside:
            options = ForecastOptions(law=law, at=(TWICE,), replicates=500)
            at = forecast(Curve(COMPUTE, rate), options).to_dict()["at"][0]
            inside[law] += at["low"] <= later <= at["high"]
            widths[law].append(at["high"] - at["low"])
            errors[law].append(abs(at["value"] - later))
    cells = "  ".join(
        f"{inside[law] / draws:>6.0%} {np.median(widths[law]):>7.3f} {np.mean(errors[law]):>7.4f}"
        for law in inside
    )
    return f"{name:<18} {index + 1}   {cells}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=100, help="simulated runs a row")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    options = parser.parse_args()
    jobs = [(name, i, options.draws) for name, truths in TRUTHS.items() for i in range(len(truths))]
    print(f"{options.draws} runs a row; {machine()}")
    print("                       auto                      sigmoid")
    print("made by                covers   width   error   covers   width   error")
    with ProcessPoolExecutor(options.jobs) as pool:
        for line in pool.map(row, jobs):
            print(line, flush=True)


if __name__ == "__main__":
    main()
