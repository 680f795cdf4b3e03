"""The report as Markdown, for job summaries, comments and merge requests.

Names come from whoever made a run: they are shown as they are, and can neither make markup, nor links, nor
call somebody (`@team`).
"""

from __future__ import annotations

import base64
from typing import Any

from rlcast.gates.chart import chart_svg, forecasts_of, sparklines
from rlcast.gates.report import GateReport, printable

_HEADLINE = {
    "pass": "PASS: the candidate keeps up with the baseline",
    "fail": "FAIL: the candidate's predicted ceiling falls below the baseline",
    "inconclusive": "INCONCLUSIVE: the points do not decide it",
    "error": "ERROR: the gate came to no decision",
}


def to_markdown(report: GateReport, chart: str | None = None) -> str:
    """The verdict, why, and a table. `chart` is the address of an image, or "inline" to embed it."""
    lines = [f"### {_HEADLINE[report.verdict]}", ""]
    lines += [f"{code(report.candidate)} against {code(report.baseline)}", ""]
    lines += [f"- {plain(reason)}" for reason in report.reasons]
    if report.policy_note:
        lines.append(f"- {plain(report.policy_note)}")
    lines.append("")
    if report.decision is not None:
        lines += [*_table(report), ""]
        image = _image(report, chart)
        lines += [image, ""] if image else []
    return "\n".join(lines)


def _table(report: GateReport) -> list[str]:
    decision = report.decision
    assert decision is not None
    level = next((f"{f['level']:.0%} interval" for f in forecasts_of(report)), "interval")
    lines = [f"| | value | {level} | |", "|---|---:|---|---|"]
    curves = [*sparklines(report), "", ""]
    for side, curve in zip(("candidate", "baseline"), curves, strict=False):
        known = decision[side]
        state = str(known.get("state", "")).replace("_", " ")
        lines.append(f"| A of the {side} | {_rate(known['value'])} | {_interval(known)} | {state} {curve} |")
    difference = decision["difference"]
    lines.append(f"| difference | {_signed(difference['value'])} | {_interval(difference, _signed)} | |")
    lines.append(f"| margin | {decision['margin']:g} | | how far below A may fall |")
    lines.append(
        f"| P(below by more than the margin) | {_rate(decision['p_below'])} | | "
        f"confidence asked: {decision['confidence']:g} |"
    )
    return lines


def _image(report: GateReport, chart: str | None) -> str | None:
    if chart is None:
        return None
    if chart != "inline":
        return f"![The curves with their forecasts](<{chart}>)"
    svg = chart_svg(report)
    if svg is None:
        return None
    data = base64.b64encode(svg.encode()).decode()
    return f"![The curves with their forecasts](data:image/svg+xml;base64,{data})"


def code(text: str) -> str:
    """A name in code letters; every sign that could be markup becomes an entity."""
    return f"<code>{_entities(text, safe='- ./').replace('www.', 'www&#46;')}</code>"


def plain(text: str) -> str:
    """A sentence that may hold names. "@" and "#" get an invisible neighbour: an entity alone still
    calls people and links issues."""
    escaped = _entities(text, safe=" -(),.=+'%?/")
    for sign in ("&#64;", "&#35;"):
        escaped = escaped.replace(sign, f"{sign}&#8203;")
    return escaped.replace("www.", "www&#46;")


def _entities(text: str, safe: str) -> str:
    return "".join(c if c.isalnum() or c in safe or ord(c) > 127 else f"&#{ord(c)};" for c in printable(text))


def _rate(value: Any) -> str:
    return "–" if value is None else f"{value:.3f}"


def _signed(value: Any) -> str:
    return "–" if value is None else f"{value:+.3f}"


def _interval(side: Any, form: Any = _rate) -> str:
    low, high = side.get("low"), side.get("high")
    return f"{form(low)} to {form(high) if high is not None else 'no upper bound'}"
