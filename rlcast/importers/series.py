"""The scores of one key, by step, and the detection of attempts that began again."""

from __future__ import annotations

import bisect
import math
from array import array
from dataclasses import dataclass, field

from rlcast.errors import InputError
from rlcast.importers.keys import KeyMatch
from rlcast.importers.rows import Options


@dataclass
class Score:
    """A score as logged. `at_start` marks a measurement before the first training step."""

    value: float
    attempt: int
    at_start: bool
    n_prompts: int | None


@dataclass
class Series:
    """All scores of one key."""

    match: KeyMatch
    scores: dict[int, Score] = field(default_factory=dict)
    n_repeated: int = 0
    n_not_finite: int = 0
    abandoned: list[int] = field(default_factory=list)

    def add(self, step: int, score: Score) -> None:
        """A later score of the same step wins; as the service sees it, a later attempt measured it."""
        if not math.isfinite(score.value):
            self.n_not_finite += 1
            return
        old = self.scores.get(step)
        if old is not None and old.value != score.value:
            self.n_repeated += 1
            score.attempt = max(score.attempt, old.attempt + 1)
        self.scores[step] = score

    def restart(self, step: int) -> None:
        """A new attempt begins at `step`: the scores of the abandoned one from there on are dropped."""
        for gone in [s for s in self.scores if s >= step]:
            del self.scores[gone]
            self.abandoned.append(gone)


class Steps:
    """The steps that were seen, 8 bytes each, and whether a row begins a new attempt.

    A step smaller than the one before begins a new attempt when it was seen already; otherwise the rows
    are merely unsorted.
    """

    def __init__(self) -> None:
        self.seen = array("q")
        self.last: int | None = None

    def restarts(self, step: int) -> bool:
        if self.last is None or step >= self.last:
            return False
        index = bisect.bisect_left(self.seen, step)
        return index < len(self.seen) and self.seen[index] == step

    def add(self, step: int) -> None:
        if not self.seen or step > self.seen[-1]:
            self.seen.append(step)
        else:
            index = bisect.bisect_left(self.seen, step)
            if self.seen[index] != step:
                self.seen.insert(index, step)
        self.last = step

    def restart(self, step: int) -> None:
        del self.seen[bisect.bisect_left(self.seen, step) :]
        self.last = self.seen[-1] if self.seen else None


def pass_rate(value: float, step: int, match: KeyMatch, options: Options) -> float:
    """The score as a fraction. Raises `InputError` with the remedy for what is not a pass rate."""
    rate = (value - options.low) / (options.high - options.low)
    if -1e-9 <= rate <= 1 + 1e-9 and math.isfinite(rate):
        return min(max(rate, 0.0), 1.0)
    where = f"step {step}: {match.key} is {value:g}"
    if options.scaled:
        raise InputError(f"{where}, outside {options.low:g} to {options.high:g}; correct --range", "--range")
    if 1 < value <= 100 and match.kind == "rate":
        raise InputError(f"{where}, outside 0 to 1; if it is in percent, pass --percent", "pass_rate")
    raise InputError(
        f"{where}, outside 0 to 1: an unbounded reward is not a pass rate; choose another key with --y, "
        "or give its bounds with --range LOW:HIGH (0:100 for percent)",
        "--range",
    )
