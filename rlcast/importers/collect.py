"""From the rows of one run to its curve: which key is the score, which attempt wins, what was spent.

Rows may come in pieces (a file that grows): `settled` gives the points that no later row can change.
"""

from __future__ import annotations

from typing import Literal

from rlcast.errors import InputError
from rlcast.importers.choice import choose, listed
from rlcast.importers.describe import describe
from rlcast.importers.keys import TRAINING_SCORE, KeyMatch, chosen_by_hand, match_key
from rlcast.importers.rows import Options, Point, Report, Row
from rlcast.importers.series import Score, Series, Steps, pass_rate
from rlcast.importers.sources import SOURCES, UNIT_ORDER, Source, Spent, match_source

#: one: a step that goes back is a new attempt. many: several processes write, each at its own pace, and
#: are told apart by the keys of their rows. unordered: the order of rows says nothing.
Writers = Literal["one", "many", "unordered"]


class Collector:
    """Collects the rows of one run. Memory grows with its steps and scores, not with the file."""

    def __init__(self, options: Options, writers: Writers = "one") -> None:
        self.options = options
        self.writers = writers
        self.devices = options.devices
        self.devices_from = "--devices" if options.devices else ""
        self.series: dict[str, Series] = {}
        self.spent: dict[str, tuple[Source, Spent]] = {}
        self.attempt = 1
        self.restarts: list[int] = []
        self.n_rows = self.n_without_step = 0
        self.training_scores: set[str] = set()
        self.numbers: set[str] = set()
        self._steps: dict[frozenset[str], Steps] = {}
        self._kinds: dict[str, KeyMatch | Source | None] = {}
        self._last_step = -1
        self._locked: KeyMatch | None = None
        self._given: set[tuple[int, int]] = set()

    # -- rows in -------------------------------------------------------------------------------

    def add(self, row: Row) -> None:
        """Takes one row. A row without a step counts as the row's number."""
        self.n_rows += 1
        if row.devices and self.devices is None:
            self.devices, self.devices_from = row.devices, "the log's configuration"
        step = row.step
        if step is None:
            self.n_without_step += 1
            step = self.n_rows
        used = [(key, value) for key, value in row.values.items() if self._kind(key) is not None]
        self._follow_attempts(
            step, frozenset(row.values) if self.writers == "many" else frozenset([row.axis])
        )
        counted = self._add_compute(step, used)
        for key, value in used:
            kind = self._kinds[key]
            if isinstance(kind, KeyMatch):
                at_start = step == 0 and not counted and not self._trained()
                score = Score(value, self.attempt, at_start, row.n_prompts)
                self.series.setdefault(key, Series(kind)).add(step, score)
        self._last_step = max(self._last_step, step)

    def _kind(self, key: str) -> KeyMatch | Source | None:
        """What a key means to us; remembered, since the keys of a log repeat for ever."""
        if key in self._kinds:
            return self._kinds[key]
        kind: KeyMatch | Source | None = None
        if key == self.options.y:
            kind = chosen_by_hand(key)
        elif key == self.options.x:
            kind = Source(SOURCES[0].pattern, self.options.unit or key, "total", f"{key} (named with --x)")
        else:
            kind = match_key(key)
            source = match_source(key)
            if kind is None and source is not None:
                kind = SOURCES[source]
        if len(self._kinds) < 10_000:
            self._kinds[key] = kind
            self.numbers.add(key)
            if kind is None and TRAINING_SCORE.match(key):
                self.training_scores.add(key)
        return kind

    def _follow_attempts(self, step: int, writer: frozenset[str]) -> None:
        """Begins a new attempt when the writer of this row went back to a step it had already written."""
        back = self._steps.setdefault(writer, Steps()).restarts(step)
        if back and self.writers != "unordered":
            self.attempt += 1
            self.restarts.append(step)
            for steps in self._steps.values():
                steps.restart(step)
            for series in self.series.values():
                series.restart(step)
            for _, spent in self.spent.values():
                spent.restart(step)
        self._steps[writer].add(step)

    def _add_compute(self, step: int, used: list[tuple[str, float]]) -> bool:
        """Adds what the row says was spent; whether it said anything."""
        found = False
        for key, value in used:
            kind = self._kinds[key]
            if isinstance(kind, Source) and 0 <= value < float("inf"):
                if key not in self.spent:
                    self.spent[key] = (kind, Spent(kind.mode))
                self.spent[key][1].add(step, value)
                found = found or kind.mode != "clock"
        return found

    def _trained(self) -> bool:
        return any(source.mode != "clock" and spent.steps for source, spent in self.spent.values())

    # -- the score's key -----------------------------------------------------------------------

    def chosen(self) -> Series:
        """The series that is the curve. Raises `InputError` that lists what there is."""
        if self._locked is not None:
            return self.series[self._locked.key]
        return choose(self.series, self.options, self.numbers, self.training_scores)

    # -- compute -------------------------------------------------------------------------------

    def sources(self) -> dict[str, tuple[str, Source, Spent]]:
        """For each unit (and `seconds`) the key it is counted by, best first in `SOURCES`."""
        best: dict[str, tuple[str, Source, Spent]] = {}
        for key, (source, spent) in self.spent.items():
            unit = source.counts
            if source.counts == "seconds" and self.devices:
                unit = "gpu_hours"
            if not spent.steps or (spent.mode == "total" and spent.amounts[-1] == 0):
                continue
            if unit not in best or _rank(source) < _rank(best[unit][1]):
                best[unit] = (key, source, spent)
        return best

    def compute_at(self, step: int, score: Score) -> dict[str, float]:
        """Compute spent at a step, by unit. Units that the log does not tell at that step are left out."""
        compute = {}
        for unit, (_, source, spent) in self.sources().items():
            amount = 0.0 if score.at_start else spent.at(step)
            if amount is None and step == 0:
                amount = 0.0
            if amount is None or unit == "seconds":
                continue
            per_unit = (self.devices or 0) / 3600.0 if source.counts == "seconds" else 1.0
            compute[unit] = amount * per_unit
        compute["steps"] = float(step)
        return compute

    def unit(self, points: list[Point]) -> str:
        """The unit of the curve: the one asked for, or the best that every point has."""
        asked = self.options.unit or (self._x_unit(self.options.x) if self.options.x else None)
        everywhere = [u for u in points[0].compute if all(u in p.compute for p in points)] if points else []
        if asked:
            if asked not in everywhere:
                raise InputError(
                    f"the log tells no {asked} at every evaluation; it tells: {', '.join(everywhere)}"
                    + ("; pass --devices N to get gpu_hours" if "seconds" in self.sources() else ""),
                    "--unit",
                )
            return asked
        return next(u for u in (*UNIT_ORDER, *everywhere) if u in everywhere)

    def _x_unit(self, key: str) -> str:
        if key not in self.spent:
            raise InputError(f"the log has no '{key}' (--x); {listed(self.numbers)}", "--x")
        return self.spent[key][0].counts

    # -- points out ----------------------------------------------------------------------------

    def points(self) -> list[Point]:
        """All points in order of step, as known now."""
        series = self.chosen()
        return [self._point(series.match, step, series.scores[step]) for step in sorted(series.scores)]

    def _point(self, match: KeyMatch, step: int, score: Score) -> Point:
        return Point(
            step=step,
            compute=self.compute_at(step, score),
            pass_rate=pass_rate(score.value, step, match, self.options),
            benchmark=self.options.benchmark or match.benchmark,
            n_prompts=score.n_prompts,
            n_samples=match.n_samples,
            attempt=score.attempt,
        )

    def settled(self, closing: bool = False) -> list[Point]:
        """New points that no later row of this attempt can change; all of them when `closing`.

        The first call that finds a score settles on its key for the rest of the run.
        """
        if not any(s.scores for s in self.series.values()):
            return []
        reach = self._last_step if closing else self._reach()
        series = self.chosen()
        new = [
            s
            for s in sorted(series.scores)
            if s <= reach and (s, series.scores[s].attempt) not in self._given
        ]
        if new:
            self._locked = series.match
        self._given |= {(s, series.scores[s].attempt) for s in new}
        return [self._point(series.match, step, series.scores[step]) for step in new]

    def _reach(self) -> int:
        """The last step that is complete: a later row was seen, of each source of compute too."""
        lasts = [spent.last_step for _, _, spent in self.sources().values() if spent.mode != "total"]
        newest = [steps.last for steps in self._steps.values() if steps.last is not None]
        return min([max(newest, default=0) - 1, *(last for last in lasts if last is not None)])

    def report(self, format_name: str) -> Report:
        return describe(self, format_name)


def _rank(source: Source) -> int:
    return SOURCES.index(source) if source in SOURCES else -1
