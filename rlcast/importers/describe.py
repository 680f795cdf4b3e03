"""What was understood of a log, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fitting.units import unit_label
from rlcast.importers.rows import Report

if TYPE_CHECKING:
    from rlcast.importers.collect import Collector
    from rlcast.importers.series import Series

#: Keys that are ours, by what they are made of.
DERIVED = {"timing/sum": "timing/gen, ref, values, adv, update_critic, update_actor"}


def plural(n: int, word: str) -> str:
    return f"{n} {word}{'' if n == 1 else 's'}"


def describe(run: Collector, format_name: str) -> Report:
    """The report of a run whose score and points are known to be readable."""
    series = run.chosen()
    points = run.points()
    report = Report(format_name)
    report.facts.append(("score", _score(run, series)))
    others = sorted(key for key, other in run.series.items() if key != series.match.key and other.scores)
    if others:
        shown = ", ".join(others[:5]) + (", …" if len(others) > 5 else "")
        report.facts.append(("other scores", f"{shown} (choose one with --y)"))
    report.facts.append(("compute", _compute(run, run.unit(points))))
    more = [unit_label(unit) for unit in points[0].compute if unit != run.unit(points)]
    if more:
        report.facts.append(("also counted", ", ".join(more)))
    report.notes += _notes(run, series, run.unit(points))
    return report


def _score(run: Collector, series: Series) -> str:
    match, options = series.match, run.options
    scale = "as fractions"
    if (options.low, options.high) == (0.0, 100.0):
        scale = "in percent"
    elif options.scaled:
        scale = f"scaled from {options.low:g} to {options.high:g}"
    elif match.kind == "score":
        scale = "a mean score, read as a pass rate since all its values lie in 0 to 1"
    return f"{match.key} ({match.what}; {scale})"


def _compute(run: Collector, unit: str) -> str:
    sources = run.sources()
    label = unit_label(unit)
    if unit == "steps":
        partial = [unit_label(other) for other in sources if other not in ("seconds", "steps")]
        if partial:
            return f"{label}: the log's own steps ({', '.join(partial)} not told at every evaluation)"
        ask = (
            " (pass --devices N for GPU-hours: the log tells times, not devices)"
            if "seconds" in sources
            else ""
        )
        return f"{label}: the log's own steps{ask}"
    key, source, spent = sources[unit]
    text = f"{label}: {source.what} ({DERIVED.get(key, key)})"
    if source.counts == "seconds":
        text += f", times {plural(run.devices or 0, 'device')} ({run.devices_from})"
    elif "seconds" in sources:
        text += " (pass --devices N for GPU-hours: the log tells times, not devices)"
    if spent.pauses:
        text += f"; {plural(spent.pauses, 'pause')} left out"
    return text


def _notes(run: Collector, series: Series, unit: str) -> list[str]:
    notes = []
    if run.restarts:
        steps = ", ".join(str(step) for step in run.restarts[:5])
        gone = len(series.abandoned)
        lost = f"; {plural(gone, 'evaluation')} of abandoned attempts left out" if gone else ""
        both = "" if unit == "steps" else ", compute of both is counted"
        notes.append(f"began again at step {steps}: the later attempt wins{both}{lost}")
    if series.n_repeated:
        notes.append(f"{plural(series.n_repeated, 'step')} with two scores: the later one was taken")
    if series.n_not_finite:
        notes.append(f"{plural(series.n_not_finite, 'score')} left out: not a finite number")
    if run.n_without_step:
        notes.append(f"{plural(run.n_without_step, 'row')} without a step: the number in the file was taken")
    return notes
