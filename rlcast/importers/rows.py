"""What importers pass on: a row of a log, a point of a curve, the reader's options, the report.

A format's own file turns lines (or a whole file) into `Row`s. What a row means (which key is the score,
where compute comes from, which attempt it belongs to) is the same for all formats: `collect.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True)
class Row:
    """Metrics of one training step under the keys of their trainer.

    `step` is None when the log does not say it; `run` is set where the log names its run or holds several.
    `devices` is their number where the log's configuration tells it. `axis` is the key that the step came
    from: a trainer may count rollouts and optimiser steps side by side.
    """

    step: int | None
    values: dict[str, float]
    run: str | None = None
    n_prompts: int | None = None
    devices: int | None = None
    axis: str = ""


@dataclass(frozen=True)
class Point:
    """One evaluation: `compute` by unit, `pass_rate` in [0, 1], and the attempt that measured it (from 1)."""

    step: int
    compute: dict[str, float]
    pass_rate: float
    benchmark: str | None = None
    n_prompts: int | None = None
    n_samples: int | None = None
    attempt: int = 1


@dataclass(frozen=True)
class Options:
    """What the user says about a log.

    `y` names the score's key and `x` the key of cumulative compute (in `unit`). `devices` turns seconds
    into GPU-hours. `low` and `high` are the bounds of the score: 0 and 100 for percent.
    """

    y: str | None = None
    x: str | None = None
    unit: str | None = None
    devices: int | None = None
    low: float = 0.0
    high: float = 1.0
    benchmark: str | None = None
    name: str | None = None

    @property
    def scaled(self) -> bool:
        return (self.low, self.high) != (0.0, 1.0)


@dataclass
class Report:
    """What was understood of a log, for the user's eyes. `facts` are (label, text)."""

    format: str = ""
    facts: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class BrokenLine(Exception):
    """A line that should hold a row but is cut or damaged. Counted and reported, never fatal."""


class LineParser(Protocol):
    """Rows of a log that grows by lines. Raises `BrokenLine`.

    `devices` is set as soon as the log itself tells how many there are, `devices_from` says where.
    """

    devices: int | None
    devices_from: str

    def rows(self, line: str) -> Iterable[Row]: ...
