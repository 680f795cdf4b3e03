"""The law straightened: the share of the gain made over the share still to make, both axes logarithmic.

With the sigmoid R = R0 + (A − R0) / (1 + (Cmid/C)^B) one has (R − R0) / (A − R) = (C/Cmid)^B: a straight line
of slope B that is 1 at Cmid. Points that bend away from it show where the law does not hold.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from fitting.units import unit_label
from rlcast.figure_style import (
    PALETTES,
    Style,
    Theme,
    escape_text,
    exponent_format,
    number_text,
    rgba,
    short_text,
    template,
)
from rlcast.figures import ForecastDict, Spec, styles_of


def line_spec(forecasts: Sequence[ForecastDict], *, theme: Theme = "light") -> Spec:
    """The straightened view of sigmoid forecasts in one unit, as plotly.js takes it.

    Points at or beyond an end of the law (R ≤ R0 or R ≥ A) have no place here; a note counts them, and
    names curves without the four parameters.
    """
    data: list[dict[str, Any]] = []
    n_beyond, without = 0, []
    for forecast, style in zip(forecasts, styles_of(forecasts, theme), strict=True):
        law = _parameters(forecast)
        if law is None:
            without.append(short_text(forecast["run"], 24))
            continue
        rows, beyond = _points(forecast, law)
        n_beyond += beyond
        data += _traces(forecast, style, law, rows)
    unit = str(forecasts[0]["unit"]) if forecasts else "gpu_hours"
    layout = {
        "template": {"layout": template(theme)},
        "xaxis": {
            "type": "log",
            "title": {"text": f"compute ({unit_label(unit)}, log scale)"},
            "exponentformat": exponent_format(unit),
        },
        "yaxis": {"type": "log", "title": {"text": "(R − R0) / (A − R)"}, "exponentformat": "SI"},
        "annotations": _note(n_beyond, without, theme),
    }
    return {"data": data, "layout": layout}


def _parameters(forecast: ForecastDict) -> tuple[float, float, float, float] | None:
    """(R0, A, B, Cmid), or None when the forecast lacks one."""
    known = forecast["parameters"]
    values = [(known.get(name) or {}).get("value") for name in ("R0", "A", "B", "Cmid")]
    start, top, slope, middle = (math.nan if value is None else float(value) for value in values)
    return (start, top, slope, middle) if start < top and slope > 0 and middle > 0 else None


def _points(
    forecast: ForecastDict, law: tuple[float, float, float, float]
) -> tuple[list[tuple[float, float, bool]], int]:
    """(compute, odds of the gain, used) of points between R0 and A; how many are not."""
    start, top, _, _ = law
    points: Mapping[str, Any] = forecast["points"]
    rows, beyond = [], 0
    for compute, rate, used in zip(points["compute"], points["pass_rate"], points["used"], strict=True):
        if compute <= 0:
            continue
        if start < rate < top:
            rows.append((float(compute), (rate - start) / (top - rate), bool(used)))
        else:
            beyond += 1
    return rows, beyond


def _traces(
    forecast: ForecastDict,
    style: Style,
    law: tuple[float, float, float, float],
    rows: list[tuple[float, float, bool]],
) -> list[dict[str, Any]]:
    _, _, slope, middle = law
    name = escape_text(short_text(forecast["run"]))
    group = str(forecast.get("run_id") or name)
    compute = [c for c in (forecast.get("grid") or {}).get("compute") or [] if c > 0] or [
        c for c, _, _ in rows
    ]
    ends = [min(compute), max(compute)] if compute else []
    traces: list[dict[str, Any]] = [
        {
            "type": "scatter",
            "mode": "lines",
            "name": name,
            "legendgroup": group,
            "x": ends,
            "y": [math.exp(slope * math.log(c / middle)) for c in ends],
            "line": {"color": style.colour, "width": 2, "dash": style.dash},
            "hovertemplate": f"slope B = {slope:.2f}<br>1 at Cmid = {number_text(middle)}<extra></extra>",
        }
    ]
    for wanted in (True, False):
        chosen = [(c, odds) for c, odds, used in rows if used is wanted]
        if chosen:
            symbol = style.marker if wanted else f"{style.marker}-open"
            traces.append(
                {
                    "type": "scatter",
                    "mode": "markers",
                    "name": "used points" if wanted else "points outside the fit",
                    "legendgroup": group,
                    "showlegend": False,
                    "x": [c for c, _ in chosen],
                    "y": [odds for _, odds in chosen],
                    "marker": {"color": style.colour, "symbol": symbol, "size": 7},
                    "hovertemplate": "%{x:.4g}: %{y:.3g}<extra></extra>",
                }
            )
    return traces


def _note(n_beyond: int, without: list[str], theme: Theme) -> list[dict[str, Any]]:
    lines = []
    if n_beyond:
        lines.append(f"{n_beyond} {'point' if n_beyond == 1 else 'points'} at or beyond R0 or A, not shown")
    if without:
        lines.append(f"no law to straighten: {escape_text(', '.join(without))}")
    if not lines:
        return []
    note = {
        "text": "<br>".join(lines),
        "xref": "paper",
        "yref": "paper",
        "x": 0.01,
        "y": 0.99,
        "xanchor": "left",
        "yanchor": "top",
        "align": "left",
        "showarrow": False,
        "font": {"size": 11, "color": PALETTES[theme].muted},
        "bgcolor": rgba(PALETTES[theme].paper, 0.7),
    }
    return [note]
