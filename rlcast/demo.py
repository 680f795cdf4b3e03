"""The whole path on one machine: published curves, a checkable forecast, two real trainings, a gate."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from rlcast.client import ENDED, Client
from rlcast.errors import ServiceError, ServiceUnreachable
from rlcast.imports import Imported, import_run
from rlcast.recipe import Recipe
from rlcast.tables import CurveRows, read_table

#: What the authors fitted, and what they then went on to pay for.
SEEN_GPU_HOURS = 50_000.0
TARGET_GPU_HOURS = 100_000.0
SCALERL_FILE = "scalerl_8b_gpu_hours.csv"
QWEN_FILE = "qwen2.5_base_grpo_flops.csv"
SCALERL_SOURCE = "ScaleRL 8B, arXiv 2510.13786, Figure 1, digitised"
QWEN_SOURCE = "GRPO on Qwen2.5, arXiv 2509.25300"
#: Candidate and baseline: the two differ in one ingredient.
RECIPES = ("tiny-cispo.yaml", "tiny-reinforce.yaml")


def data_file(kind: str, name: str) -> Path:
    """A file that is shipped with rlcast: `kind` is "curves" or "recipes"."""
    return Path(str(resources.files("rlcast"))) / "data" / kind / name


def import_curves(client: Client) -> list[Imported]:
    """Imports the shipped curves; a second time adds nothing."""
    done = []
    for file, benchmark in ((SCALERL_FILE, "polaris-heldout"), (QWEN_FILE, "math-heldout-500")):
        for rows in read_table(data_file("curves", file)).runs.values():
            done.append(import_run(client, rows, recipe=rows.run, benchmark=benchmark))
    return done


@dataclass(frozen=True)
class Checked:
    """A forecast beside what happened: one row a measured point behind the window.

    `rows` holds (compute, forecast, low, high, measured).
    """

    forecast: dict[str, Any]
    rows: list[tuple[float, float, float, float, float]]

    @property
    def inside(self) -> int:
        return sum(low <= measured <= high for _, _, low, high, measured in self.rows)

    @property
    def mean_absolute_error(self) -> float:
        return sum(abs(value - measured) for _, value, _, _, measured in self.rows) / len(self.rows)


def check_forecast(client: Client, rows: CurveRows, seen: float, *more_at: float, last: int = 15) -> Checked:
    """Forecasts a run of the service from its points up to `seen`, at the `last` points behind it."""
    behind = [(c, r) for c, r in zip(rows.compute, rows.pass_rate, strict=True) if c > seen][-last:]
    at = [c for c, _ in behind]
    [forecast] = client.forecasts(runs=[rows.run], max_compute=seen, at=[*at, *more_at])
    found = forecast["at"][: len(behind)]
    table = [
        (c, f["value"], f["low"], f["high"], measured) for (c, measured), f in zip(behind, found, strict=True)
    ]
    return Checked(forecast, table)


def submit_recipes(client: Client) -> list[dict[str, Any]]:
    """Queues the two small recipes."""
    recipes = [Recipe.from_yaml(data_file("recipes", name)) for name in RECIPES]
    return [client.submit(recipe.model_dump(mode="json")) for recipe in recipes]


def follow(client: Client, job_ids: list[str], check: Callable[[], None]) -> Iterator[list[dict[str, Any]]]:
    """Yields the jobs as they go on, with their newest evaluations, until all have ended.

    A service that is restarted meanwhile is waited for; `check` is called every round and may raise.
    """
    while True:
        check()
        try:
            jobs = [client.job(job_id) for job_id in job_ids]
            for job in jobs:
                job["evaluations"] = list(client.evaluations(job["run_name"], limit=1000))
        except (ServiceUnreachable, ServiceError):
            time.sleep(1.0)
            continue
        yield jobs
        if all(job["state"] in ENDED for job in jobs):
            return
        time.sleep(1.0)
