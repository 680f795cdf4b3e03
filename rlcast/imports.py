"""Puts the runs of a table or a log into the service. Importing twice adds nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rlcast.client import Client, evaluation_items
from rlcast.errors import InputError
from rlcast.tables import UNITS, CurveRows

#: Benchmark of a file that does not name one.
UNNAMED_BENCHMARK = "pass_rate"


@dataclass(frozen=True)
class Imported:
    """What the import of one run did."""

    run: str
    unit: str
    benchmark: str
    created: int
    duplicates: int
    superseded: int


def import_run(
    client: Client, rows: CurveRows, *, recipe: str | None = None, benchmark: str | None = None
) -> Imported:
    """Creates the run if need be and sends its evaluations, attempt by attempt.

    `recipe` defaults to the run's own name. Raises `InputError` for a unit the service does not know.
    """
    if rows.unit not in UNITS:
        raise InputError(
            f"run '{rows.run}': the unit of '{rows.unit}' is not known; pass --unit ({', '.join(UNITS)})",
            "--unit",
        )
    benchmark = benchmark or rows.benchmark or UNNAMED_BENCHMARK
    run = client.create_run(
        name=rows.run, recipe=recipe or rows.run, benchmark=benchmark, compute_unit=rows.unit, source="import"
    )
    sums = {"created": 0, "duplicates": 0, "superseded": 0}
    for attempt, items in _by_attempt(rows).items():
        answer = client.post_evaluations(run["id"], items, **({"attempt": attempt} if attempt > 1 else {}))
        sums = {key: sums[key] + answer[key] for key in sums}
    return Imported(rows.run, rows.unit, benchmark, **sums)


def _by_attempt(rows: CurveRows) -> dict[int, list[dict[str, Any]]]:
    """The evaluations of each attempt, the first attempt first."""
    order = np.argsort(np.asarray(rows.compute), kind="stable")
    attempts = [rows.attempts[i] for i in order] if rows.attempts else [1] * len(order)
    sent: dict[int, list[dict[str, Any]]] = {}
    for attempt, item in zip(attempts, evaluations_of(rows), strict=True):
        sent.setdefault(attempt, []).append(item)
    return dict(sorted(sent.items()))


def evaluations_of(rows: CurveRows) -> list[dict[str, Any]]:
    """The rows as the service takes them, in order of compute.

    Without a step column the steps count the rows from 1 in order of compute (a row at zero compute is
    step 0), so that a longer export of the same run adds only its new rows.
    """
    order = np.argsort(np.asarray(rows.compute), kind="stable")
    steps = [rows.steps[i] for i in order] if rows.steps else _count_steps([rows.compute[i] for i in order])
    if len(set(steps)) != len(steps):
        raise InputError(
            f"run '{rows.run}' has one step twice; keep one row a step, or drop the step column", "step"
        )
    items = evaluation_items(
        steps,
        [rows.compute[i] for i in order],
        [rows.pass_rate[i] for i in order],
        rows.unit,
        [rows.n_prompts[i] for i in order],
        [rows.n_samples[i] for i in order],
    )
    for unit, amounts in rows.also.items():
        for item, i in zip(items, order, strict=True):
            item["compute"][unit] = amounts[i]
    return items


def _count_steps(compute: list[float]) -> list[int]:
    first = 0 if compute and compute[0] == 0 else 1
    return list(range(first, first + len(compute)))
