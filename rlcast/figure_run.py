"""Figures of one run: what the law leaves over, and how the forecast changed as points arrived."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from fitting.units import unit_label
from rlcast.figure_style import (
    PALETTES,
    Theme,
    log_ticks,
    number_text,
    rgba,
    style_of,
    template,
)

ForecastDict = Mapping[str, Any]


def residual_figure(forecast: ForecastDict, *, theme: Theme = "light") -> go.Figure:
    """Measured minus law at each point over the logarithmic compute axis.

    The law is read from the forecast's grid, linear in log compute between its nodes; points outside of
    the grid are left out. Used points are filled, others hollow. A pattern here (a slope, a wave) says
    that the law does not fit; scatter around zero says that it does.
    """
    style, palette = style_of(0, theme), PALETTES[theme]
    figure = go.Figure(layout={"template": {"layout": template(theme)}})
    points = forecast["points"]
    rows = [
        (compute, rate - expected, used)
        for compute, rate, used in zip(points["compute"], points["pass_rate"], points["used"], strict=True)
        if compute > 0 and (expected := law_at(forecast, compute)) is not None
    ]
    for wanted, name in ((True, "used points"), (False, "points outside the fit")):
        chosen = [row for row in rows if row[2] is wanted]
        if chosen:
            figure.add_trace(
                go.Scatter(
                    x=[row[0] for row in chosen],
                    y=[row[1] for row in chosen],
                    mode="markers",
                    name=name,
                    showlegend=False,
                    marker={
                        "symbol": style.marker if wanted else f"{style.marker}-open",
                        "color": style.colour,
                        "size": 7,
                    },
                    hovertemplate="%{x:.4g}: %{y:+.4f}<extra></extra>",
                )
            )
    figure.add_hline(y=0, line={"color": palette.muted, "width": 1})
    _axes(figure, forecast["unit"], "measured − law", [row[0] for row in rows])
    figure.update_yaxes(tickformat="+.2~g")
    return figure


def law_at(forecast: ForecastDict, compute: float) -> float | None:
    """The forecast's law at `compute`, interpolated on its grid; None outside of it."""
    grid = forecast.get("grid") or {"compute": [], "value": []}
    nodes = [(c, v) for c, v in zip(grid["compute"], grid["value"], strict=True) if c > 0 and v is not None]
    if not nodes or not nodes[0][0] * (1 - 1e-9) <= compute <= nodes[-1][0] * (1 + 1e-9):
        return None
    return float(np.interp(math.log(compute), [math.log(c) for c, _ in nodes], [v for _, v in nodes]))


def history_figure(history: Sequence[ForecastDict], *, theme: Theme = "light") -> go.Figure:
    """The asymptote A as it was forecast when only the points up to each compute were known.

    `history` are forecasts of one run that saw more and more of it. Forecasts whose A was identified are
    filled, others hollow: before that, an estimate of A says little. Bars are the forecast's level.
    """
    style = style_of(0, theme)
    figure = go.Figure(layout={"template": {"layout": template(theme)}})
    rows = [
        (float(f["grid"]["observed_to"]), f["parameters"]["A"], f["verdict"]["state"], f["level"])
        for f in history
        if f["parameters"].get("A")
    ]
    for identified, name in ((True, "A, identified"), (False, "A, not identified yet")):
        chosen = [row for row in rows if (row[2] == "identified") is identified]
        if not chosen:
            continue
        figure.add_trace(
            go.Scatter(
                x=[row[0] for row in chosen],
                y=[row[1]["value"] for row in chosen],
                mode="markers",
                name=name,
                marker={
                    "symbol": "circle" if identified else "circle-open",
                    "color": style.colour,
                    "size": 8,
                },
                error_y=_bars([row[1] for row in chosen], style.colour),
                customdata=[_history_text(*row) for row in chosen],
                hovertemplate="%{customdata}<extra></extra>",
            )
        )
    unit = str(history[0]["unit"]) if history else "gpu_hours"
    _axes(figure, unit, "forecast of A", [row[0] for row in rows], "points seen up to")
    return figure


def _bars(intervals: Sequence[Mapping[str, Any]], colour: str) -> dict[str, object]:
    def arm(interval: Mapping[str, Any], end: str) -> float:
        return 0.0 if interval.get(end) is None else abs(float(interval[end]) - float(interval["value"]))

    return {
        "type": "data",
        "symmetric": False,
        "array": [arm(interval, "high") for interval in intervals],
        "arrayminus": [arm(interval, "low") for interval in intervals],
        "color": rgba(colour, 0.6),
        "thickness": 1.5,
        "width": 3,
    }


def _history_text(compute: float, a: Mapping[str, Any], state: str, level: float) -> str:
    text = f"points up to {number_text(compute)}<br>A {a['value']:.3f}"
    if a.get("low") is not None and a.get("high") is not None:
        text += f"<br>{level:.0%}: {a['low']:.3f} to {a['high']:.3f}"
    return f"{text}<br>{state.replace('_', ' ')}"


def _axes(figure: go.Figure, unit: str, title: str, compute: Sequence[float], what: str = "compute") -> None:
    figure.update_xaxes(
        type="log",
        title={"text": f"{what} ({unit_label(unit)})"},
    )
    figure.update_yaxes(title={"text": title})
    if compute:
        low, high = math.log10(min(compute)), math.log10(max(compute))
        pad = max(0.04 * (high - low), 0.02)
        figure.update_xaxes(range=[low - pad, high + pad], **log_ticks(10 ** (low - pad), 10 ** (high + pad)))
