"""Where compute comes from in a log, and how it adds up to the compute spent at a step.

Each unit has its sources in order of preference. Time becomes GPU-hours only with a number of devices.
"""

from __future__ import annotations

import bisect
import re
from array import array
from dataclasses import dataclass
from itertools import accumulate
from statistics import median
from typing import Literal

#: each: what one step took. interval: the mean of one step since the row before. total: a counter.
#: clock: the time of day in seconds.
Mode = Literal["each", "interval", "total", "clock"]


@dataclass(frozen=True)
class Source:
    """A form of key and what it counts: `seconds` of wall clock, or one of the units of compute."""

    pattern: re.Pattern[str]
    counts: str
    mode: Mode
    what: str


def _source(pattern: str, counts: str, mode: Mode, what: str) -> Source:
    return Source(re.compile(pattern), counts, mode, what)


SOURCES: tuple[Source, ...] = (
    _source(r"^(?:compute_)?(?:gpu_hours|gpu-hours|gpuh)$", "gpu_hours", "total", "GPU-hours in the log"),
    _source(r"^timing_s/step$", "seconds", "each", "time of each step"),
    _source(r"^perf/time_per_step$", "seconds", "each", "time of each step"),
    _source(r"^timing/sum$", "seconds", "each", "times of the parts of each step"),
    _source(r"^timing/train/total_step_time$", "seconds", "each", "time of each step"),
    _source(r"^perf/step_time$", "seconds", "each", "time of each step"),
    _source(
        r"^(?:train/)?step_time$",
        "seconds",
        "interval",
        "mean time of a step, times the steps since the row before",
    ),
    _source(r"^time/step$", "seconds", "each", "time of each step"),
    _source(r"^time/total$", "seconds", "each", "time of each step of the learner"),
    _source(
        r"^(?:record_time|elapsed_time|elapsed_s|elapsed_seconds|time_since_start)$",
        "seconds",
        "total",
        "time since the start",
    ),
    _source(r"^(?:train/)?elapsed_time$", "seconds", "total", "time since the start"),
    _source(r"^_runtime$", "seconds", "total", "W&B's time since the start"),
    _source(
        r"^(?:_timestamp|time|timestamp|wall_time)$", "seconds", "clock", "clock of the log, pauses left out"
    ),
    _source(
        r"^(?:training_|train/|total_)?(?:flops|total_flops|total_flos)$",
        "flops",
        "total",
        "FLOPs counted by the trainer",
    ),
    _source(r"^perf/total_num_tokens$", "tokens", "each", "tokens of each step"),
    _source(r"^(?:train/)?num_tokens$", "tokens", "total", "tokens counted by the trainer"),
    _source(r"^progress/total_tokens$", "tokens", "total", "tokens counted by the trainer"),
    _source(r"^val/num_total_tokens$", "tokens", "total", "tokens counted by the trainer"),
    _source(r"^(?:total_)?tokens$", "tokens", "total", "tokens counted by the trainer"),
    _source(r"^progress/total_(?:rollouts|samples)$", "samples", "total", "rollouts counted by the trainer"),
    _source(
        r"^(?:episode|samples|trainer_model_version)$", "samples", "total", "samples counted by the trainer"
    ),
)

#: Units in the order in which one is chosen for a run.
UNIT_ORDER = ("gpu_hours", "flops", "tokens", "samples", "steps")

#: A gap in the clock is a pause when it is longer than this and than ten times the usual gap.
PAUSE_S = 600.0


def match_source(key: str) -> int | None:
    """Place of the key's source in `SOURCES`; None when the key counts no compute."""
    return next((i for i, source in enumerate(SOURCES) if source.pattern.match(key)), None)


class Spent:
    """What one key says was spent up to each step. Holds 16 bytes a step.

    Work of an attempt that was abandoned was paid for: it counts at the step where the next one began.
    """

    def __init__(self, mode: Mode) -> None:
        self.mode = mode
        self.steps = array("q")
        self.amounts = array("d")
        self._sums: list[float] | None = None
        self._offset = 0.0
        self._peak: float | None = None
        self._lost = 0.0
        self._clock: float | None = None
        self._gaps: list[float] = []
        self.pauses = 0

    @property
    def last_step(self) -> int | None:
        return self.steps[-1] if self.steps else None

    def add(self, step: int, value: float) -> None:
        """A value of the key at `step`. The same step again replaces it (the clock adds up)."""
        if self.mode == "clock":
            self._put(step, self._gap(value), add=True)
        elif self.mode == "interval":
            self._put(step, value * max(step - self._step_before(step), 1))
        elif self.mode == "total":
            self._put(step, value + self._base(step, value))
        else:
            self._put(step, value)

    def restart(self, step: int) -> None:
        """A new attempt begins at `step`: later steps are forgotten, their cost is not."""
        first = bisect.bisect_left(self.steps, step)
        if self.mode == "total":
            self._peak = max(self.amounts, default=None)
        else:
            self._lost += sum(self.amounts[first:])
        del self.steps[first:], self.amounts[first:]
        self._sums = None

    def at(self, step: int) -> float | None:
        """Spent up to and including `step`; None when the log does not say."""
        index = bisect.bisect_right(self.steps, step) - 1
        if index < 0:
            return None
        if self.mode == "total":
            return self.amounts[index]
        if self._sums is None:
            self._sums = list(accumulate(self.amounts))
        return self._sums[index]

    def _put(self, step: int, amount: float, add: bool = False) -> None:
        amount, self._lost = amount + self._lost, 0.0
        index = bisect.bisect_left(self.steps, step)
        if index < len(self.steps) and self.steps[index] == step:
            self.amounts[index] = self._joined(self.amounts[index], amount, add)
        else:
            self.steps.insert(index, step)
            self.amounts.insert(index, amount)
        self._sums = None

    def _joined(self, old: float, new: float, add: bool) -> float:
        if add:
            return old + new
        # Two processes may log the same key at one step: the longer time holds the devices.
        return max(old, new) if self.mode == "each" else new

    def _step_before(self, step: int) -> int:
        index = bisect.bisect_left(self.steps, step)
        return self.steps[index - 1] if index else 0

    def _base(self, step: int, value: float) -> float:
        """What is added to a counter: after a restart it may begin at zero again."""
        if self._peak is not None:
            index = bisect.bisect_left(self.steps, step)
            kept = self.amounts[index - 1] if index else None
            if kept is None or value + self._offset <= kept:
                self._offset = self._peak
            self._peak = None
        return self._offset

    def _gap(self, now: float) -> float:
        gap = 0.0 if self._clock is None else max(now - self._clock, 0.0)
        self._clock = now
        if gap > PAUSE_S and len(self._gaps) >= 5 and gap > 10 * median(self._gaps):
            self.pauses += 1
            return float(median(self._gaps))
        self._gaps = [*self._gaps[-99:], gap]
        return gap
