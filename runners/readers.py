"""Readers find evaluations in what a training command writes.

A reader gets one line at a time and answers with the points in it; most lines hold none. It keeps what it
must remember between lines, and is made anew for each attempt.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True)
class Point:
    """One evaluation. `gpu_hours` is None where the line has none: then the allocation is metered.

    Raises `ValueError`, which names the field, for values that cannot be one.
    """

    step: int
    pass_rate: float
    gpu_hours: float | None = None
    n_prompts: int | None = None
    n_samples: int | None = None
    benchmark: str | None = None

    def __post_init__(self) -> None:
        _check(0 <= self.step < 2**53, "step", "a whole number from 0", self.step)
        _check(0 <= self.pass_rate <= 1, "pass_rate", "a fraction from 0 to 1", self.pass_rate)
        if self.gpu_hours is not None:
            usable = math.isfinite(self.gpu_hours) and self.gpu_hours >= 0
            _check(usable, "gpu_hours", "a number from 0", self.gpu_hours)


class Reader(Protocol):
    """What a reader of another trainer's output must have."""

    def feed(self, line: str) -> list[Point]:
        """The points of one line, without its newline. Raises `ValueError` for a point that is spoilt."""
        ...


class JsonLines:
    """Lines that are JSON objects with `step` and `pass_rate`, among any others.

    `gpu_hours`, `n_prompts`, `n_samples` and `benchmark` are read where they are there; other keys are not.
    """

    def feed(self, line: str) -> list[Point]:
        if not line.lstrip().startswith("{"):
            return []
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            return []
        if not isinstance(found, dict) or not {"step", "pass_rate"} <= found.keys():
            return []
        benchmark = found.get("benchmark")
        _check(benchmark is None or isinstance(benchmark, str), "benchmark", "text", benchmark)
        return [
            Point(
                step=_whole(found, "step"),
                pass_rate=_number(found, "pass_rate"),
                gpu_hours=_number(found, "gpu_hours") if found.get("gpu_hours") is not None else None,
                n_prompts=_whole(found, "n_prompts") if found.get("n_prompts") is not None else None,
                n_samples=_whole(found, "n_samples") if found.get("n_samples") is not None else None,
                benchmark=benchmark,
            )
        ]


def _check(good: bool, field: str, wanted: str, got: object) -> None:
    if not good:
        raise ValueError(f"{field}: must be {wanted}, not {got!r}")


def _number(found: dict[str, Any], field: str) -> float:
    value = found[field]
    good = isinstance(value, int | float) and not isinstance(value, bool)
    _check(good, field, "a number", value)
    return float(value)


def _whole(found: dict[str, Any], field: str) -> int:
    value = _number(found, field)
    _check(value.is_integer(), field, "a whole number", found[field])
    return int(value)
