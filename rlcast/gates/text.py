"""The report in words: the verdict first, then why, then the numbers."""

from __future__ import annotations

from typing import Any

from rlcast.gates.report import GateReport, printable


def to_text(report: GateReport) -> str:
    """Several lines; the first word is the verdict in capitals."""
    head = f"{report.verdict.upper()}  {report.candidate} against {report.baseline}"
    notes = [*report.reasons, *([report.policy_note] if report.policy_note else [])]
    lines = [head, *(f"  · {note}" for note in notes), *_numbers(report)]
    return "\n".join(printable(line) for line in lines) + "\n"


def _numbers(report: GateReport) -> list[str]:
    decision = report.decision
    if decision is None:
        return []
    lines = []
    for role in ("candidate", "baseline"):
        side = decision[role]
        lines.append(f"  A of the {role}: {_rate(side['value'])} ({_interval(side)})")
    difference = decision["difference"]
    lines.append(
        f"  difference {_signed(difference['value'])} "
        f"({_signed(difference['low'])} to {_signed(difference['high'])}), margin {decision['margin']:g}, "
        f"P(A below baseline − margin) = {_rate(decision['p_below'])}"
    )
    return lines


def _rate(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _signed(value: float | None) -> str:
    return "–" if value is None else f"{value:+.3f}"


def _interval(side: dict[str, Any]) -> str:
    high = side["high"]
    return f"{_rate(side['low'])} to {_rate(high) if high is not None else 'no upper bound'}"
