"""A small static chart of a gate: SVG written by hand, without scripts or fonts of its own."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape

from fitting.units import unit_label
from rlcast.gates.report import GateReport, printable

_WIDTH, _HEIGHT = 640, 320
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 16, 40, 44
_COLOURS = ("#0072B2", "#D55E00")  # Okabe and Ito's blue and vermilion
_TEXT = 'font-family="sans-serif" font-size="12" fill="#1b1f24"'
_BLOCKS = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class Axes:
    """Logarithmic compute and linear pass rate onto the picture."""

    compute_min: float
    compute_max: float
    rate_min: float
    rate_max: float

    def x(self, compute: float) -> float:
        share = math.log(compute / self.compute_min) / math.log(self.compute_max / self.compute_min)
        return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)

    def y(self, rate: float) -> float:
        share = (rate - self.rate_min) / (self.rate_max - self.rate_min)
        return _HEIGHT - _BOTTOM - share * (_HEIGHT - _TOP - _BOTTOM)

    def path(self, compute: Sequence[float], rate: Sequence[float]) -> str:
        return " ".join(f"{self.x(c):.1f},{self.y(r):.1f}" for c, r in zip(compute, rate, strict=True))


def forecasts_of(report: GateReport) -> list[Mapping[str, Any]]:
    """The candidate's forecast, then the baseline's unless it is a number; those with a curve only."""
    decision = report.decision or {}
    found = [decision.get("candidate_forecast"), decision.get("baseline_forecast")]
    return [forecast for forecast in found if forecast and forecast.get("grid")]


def chart_svg(report: GateReport) -> str | None:
    """Points, fit (solid where points are, dashed beyond), band, and the line that A must hold.

    None when there is no forecast to draw.
    """
    forecasts = forecasts_of(report)
    if not forecasts or report.decision is None:
        return None
    floor = report.decision["baseline"]["value"] - report.decision["margin"]
    axes = _axes(forecasts, floor)
    parts = [_frame(axes, str(forecasts[0]["unit"])), _floor_line(axes, floor)]
    for forecast, colour in reversed(list(zip(forecasts, _COLOURS, strict=False))):
        parts.append(_curve(axes, forecast, colour))
    for i, name in enumerate((report.candidate, report.baseline)[: len(forecasts)]):
        parts.append(_legend(i, name))
    title = f"{printable(report.candidate)} against {printable(report.baseline)}: {report.verdict}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" '
        f'height="{_HEIGHT}" role="img"><title>{escape(title)}</title>'
        f'<rect width="100%" height="100%" fill="#ffffff"/>{"".join(parts)}</svg>\n'
    )


def _axes(forecasts: Sequence[Mapping[str, Any]], floor: float) -> Axes:
    computes = [c for f in forecasts for c in f["grid"]["compute"] if c > 0]
    rates = [r for f in forecasts for key in ("low", "high") for r in f["grid"][key] if r is not None]
    rates += [r for f in forecasts for r in f["points"]["pass_rate"]] + [floor]
    low, high = min(rates), max(rates)
    room = 0.04 * max(high - low, 0.05)
    return Axes(min(computes), max(*computes, min(computes) * 1.01), low - room, high + room)


def _frame(axes: Axes, unit: str) -> str:
    parts = []
    for rate in _round_steps(axes.rate_min, axes.rate_max):
        y = axes.y(rate)
        parts.append(f'<path d="M{_LEFT} {y:.1f}H{_WIDTH - _RIGHT}" stroke="#e4e8ec"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end" {_TEXT}>{rate:g}</text>')
    for power in range(math.ceil(math.log10(axes.compute_min)), math.floor(math.log10(axes.compute_max)) + 1):
        x = axes.x(10.0**power)
        parts.append(f'<path d="M{x:.1f} {_TOP}V{_HEIGHT - _BOTTOM}" stroke="#e4e8ec"/>')
        label = f"{10**power:,}" if 0 <= power < 6 else f"1e{power}"
        parts.append(
            f'<text x="{x:.1f}" y="{_HEIGHT - _BOTTOM + 16}" text-anchor="middle" {_TEXT}>{label}</text>'
        )
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    parts.append(
        f'<text x="{middle}" y="{_HEIGHT - 8}" text-anchor="middle" {_TEXT}>'
        f"compute ({escape(printable(unit_label(unit)))}, log scale)</text>"
    )
    return "".join(parts)


def _round_steps(low: float, high: float) -> list[float]:
    """Four to nine round values in the range."""
    step = next(s for s in (0.01, 0.02, 0.05, 0.1, 0.2) if (high - low) / s <= 9)
    return [round(i * step, 2) for i in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _floor_line(axes: Axes, floor: float) -> str:
    y = axes.y(floor)
    return (
        f'<path d="M{_LEFT} {y:.1f}H{_WIDTH - _RIGHT}" stroke="#57606a" stroke-dasharray="2 3"/>'
        f'<text x="{_LEFT + 6}" y="{y - 4:.1f}" {_TEXT}>A to hold: {floor:.3f}</text>'
    )


def _curve(axes: Axes, forecast: Mapping[str, Any], colour: str) -> str:
    grid, points = forecast["grid"], forecast["points"]
    rows = [
        row
        for row in zip(grid["compute"], grid["value"], grid["low"], grid["high"], strict=True)
        if row[0] > 0 and None not in row
    ]
    compute, value, low, high = (list(column) for column in zip(*rows, strict=True))
    band = axes.path(compute, high) + " " + axes.path(compute[::-1], low[::-1])
    seen = [i for i, c in enumerate(compute) if c <= grid["observed_to"]]
    last = seen[-1] if seen else 0
    dots = "".join(
        f'<circle cx="{axes.x(c):.1f}" cy="{axes.y(r):.1f}" r="2.5" '
        + (f'fill="{colour}"/>' if used else f'fill="none" stroke="{colour}"/>')
        for c, r, used in zip(points["compute"], points["pass_rate"], points["used"], strict=True)
        if axes.compute_min <= c <= axes.compute_max
    )
    line = f'fill="none" stroke="{colour}" stroke-width="2"'
    return (
        f'<polygon points="{band}" fill="{colour}" fill-opacity="0.15"/>'
        f'<polyline points="{axes.path(compute[: last + 1], value[: last + 1])}" {line}/>'
        f'<polyline points="{axes.path(compute[last:], value[last:])}" {line} stroke-dasharray="6 4"/>{dots}'
    )


def _legend(index: int, name: str) -> str:
    shown = printable(name)
    shown = shown if len(shown) <= 36 else f"{shown[:35]}…"
    x = _LEFT + index * (_WIDTH - _LEFT) // 2
    return (
        f'<rect x="{x}" y="12" width="12" height="12" fill="{_COLOURS[index]}"/>'
        f'<text x="{x + 18}" y="22" {_TEXT}>{escape(shown)}</text>'
    )


def sparklines(report: GateReport, width: int = 24) -> list[str]:
    """Each forecast's curve over its logarithmic compute as block characters, on one scale: a chart for
    places that show text only."""
    values = [_sampled(forecast["grid"]["value"], width) for forecast in forecasts_of(report)]
    known = [v for row in values for v in row]
    if not known:
        return []
    low, span = min(known), (max(known) - min(known)) or 1.0
    return ["".join(_BLOCKS[round((v - low) / span * (len(_BLOCKS) - 1))] for v in row) for row in values]


def _sampled(curve: Sequence[float | None], width: int) -> list[float]:
    values = [value for value in curve if value is not None]
    n = len(values)
    return [values[round(i * (n - 1) / (width - 1))] for i in range(width)] if n else []
