"""Figures of a back-test: forecast against what happened, by how much of the run was seen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from rlcast.figure_style import PALETTES, Theme, style_of, template


def backtest_figure(result: Mapping[str, Any], *, theme: Theme = "light") -> go.Figure:
    """Left: mean absolute error of each method by fraction seen. Right: forecasts of `auto` (or of the first
    method) with their intervals against what happened; on the diagonal they were right.

    `result` is `Backtest.to_dict()`.
    """
    figure = make_subplots(
        rows=1,
        cols=2,
        subplot_titles=("mean absolute error by fraction seen", "forecast against what happened"),
    )
    figure.update_layout(template={"layout": template(theme)}, height=420)
    methods = list(dict.fromkeys(row["method"] for row in result["summary"]))
    for i, method in enumerate(methods):
        rows = [row for row in result["summary"] if row["method"] == method]
        _errors(figure, rows, method, i, theme)
    chosen = "auto" if "auto" in methods else methods[0]
    scores = [score for score in result["scores"] if score["method"] == chosen]
    for i, seen in enumerate(dict.fromkeys(score["seen"] for score in scores)):
        _against(figure, [score for score in scores if score["seen"] == seen], f"{seen:.0%} seen", i, theme)
    values = [v for score in scores for v in (score["low"], score["high"], score["happened"])]
    line = {"color": PALETTES[theme].muted, "width": 1}
    ends = [min(values), max(values)]
    diagonal = go.Scatter(x=ends, y=ends, mode="lines", line=line, showlegend=False, hoverinfo="skip")
    figure.add_trace(diagonal, row=1, col=2)
    figure.update_xaxes(title_text="fraction of evaluations seen", tickformat=".0%", row=1, col=1)
    figure.update_yaxes(title_text="pass rate", rangemode="tozero", row=1, col=1)
    figure.update_xaxes(title_text="happened", row=1, col=2)
    figure.update_yaxes(title_text=f"forecast ({chosen})", row=1, col=2)
    return figure


def _errors(figure: go.Figure, rows: list[Mapping[str, Any]], method: str, index: int, theme: Theme) -> None:
    style = style_of(index, theme)
    figure.add_trace(
        go.Scatter(
            x=[row["seen"] for row in rows],
            y=[row["mean_absolute_error"] for row in rows],
            name=method,
            mode="lines+markers",
            line={"color": style.colour, "width": 3 if method == "auto" else 1.5},
            marker={"symbol": style.marker, "size": 8},
        ),
        row=1,
        col=1,
    )


def _against(figure: go.Figure, scores: list[Mapping[str, Any]], name: str, index: int, theme: Theme) -> None:
    style = style_of(index + 3, theme)
    figure.add_trace(
        go.Scatter(
            x=[score["happened"] for score in scores],
            y=[score["forecast"] for score in scores],
            error_y={
                "type": "data",
                "symmetric": False,
                "array": [score["high"] - score["forecast"] for score in scores],
                "arrayminus": [score["forecast"] - score["low"] for score in scores],
                "color": style.colour,
                "thickness": 1,
            },
            text=[score["run"] for score in scores],
            name=name,
            mode="markers",
            marker={"symbol": style.marker, "color": style.colour, "size": 8},
        ),
        row=1,
        col=2,
    )
