"""Plotly figures of forecasts, the same in a notebook and in the dashboard.

Input is `Forecast.to_dict()`; nothing is fitted here. Measured points and the fit, the extrapolation and
its bands are drawn so that they cannot be taken for each other: used points are filled, unused ones
hollow; the law is solid where points support it and dashed beyond; the band at the forecast's level is
light, the 50% band darker.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import plotly.graph_objects as go

from fitting.units import unit_label
from rlcast.figure_style import (
    PALETTES,
    Palette,
    Style,
    Theme,
    escape_text,
    exponent_format,
    number_text,
    rgba,
    short_text,
    style_of,
    template,
)

ForecastDict = Mapping[str, Any]
Spec = dict[str, Any]


def binomial_interval(pass_rate: float, n_trials: int, level: float = 0.9) -> tuple[float, float]:
    """Wilson's score interval of a pass rate measured with `n_trials` independent tries.

    E. B. Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22 (1927).
    For a fixed set of prompts with several samples each it is on the safe side: prompts of unequal
    difficulty make the mean vary less than one coin would.
    """
    z = NormalDist().inv_cdf(0.5 + level / 2)
    scale = 1 + z * z / n_trials
    centre = (pass_rate + z * z / (2 * n_trials)) / scale
    half = z / scale * math.sqrt(pass_rate * (1 - pass_rate) / n_trials + z * z / (4 * n_trials**2))
    return max(0.0, centre - half), min(1.0, centre + half)


def forecast_figure(
    forecasts: Sequence[ForecastDict],
    *,
    baseline: float | ForecastDict | None = None,
    margin: float = 0.02,
    budget: float | None = None,
    theme: Theme = "light",
) -> go.Figure:
    """Draws forecasts over a logarithmic compute axis, see `forecast_spec`."""
    return go.Figure(forecast_spec(forecasts, baseline=baseline, margin=margin, budget=budget, theme=theme))


def forecast_spec(
    forecasts: Sequence[ForecastDict],
    *,
    baseline: float | ForecastDict | None = None,
    margin: float = 0.02,
    budget: float | None = None,
    theme: Theme = "light",
) -> Spec:
    """The figure as plotly.js takes it: `data` and `layout` of finite numbers, lists and text.

    `forecasts` are `Forecast.to_dict()` of one compute unit; a key `recipe` in them groups runs under
    one colour, and `points` may carry `n_prompts` and `n_samples` for error bars. A dictionary without
    `grid` shows its points only. `baseline` is a number or a forecast whose A is the reference, drawn
    with a strip of `margin` below it; `budget` is the compute that one can pay, a vertical line.

    Raises `ValueError` when the forecasts are in different units.
    """
    units = list(dict.fromkeys(str(f["unit"]) for f in forecasts))
    if len(units) > 1:
        raise ValueError(
            f"unit: curves in {' and '.join(units)} cannot share an axis; draw one unit at a time"
        )
    reference = _baseline_value(baseline)
    layout = {"template": {"layout": template(theme)}, "shapes": [], "annotations": []}
    spec: Spec = {"data": [], "layout": layout}
    for forecast, style in zip(forecasts, styles_of(forecasts, theme), strict=True):
        _add_forecast(spec, forecast, style)
    _set_axes(spec, forecasts, units[0] if units else "gpu_hours", reference, budget)
    if reference is not None:
        _add_baseline(spec, reference, margin, baseline, PALETTES[theme])
    if budget is not None and budget > 0:
        _add_budget(spec, budget, PALETTES[theme])
    _add_notes(spec, forecasts, PALETTES[theme])
    return spec


def styles_of(forecasts: Sequence[ForecastDict], theme: Theme = "light") -> list[Style]:
    """The style of each forecast in a figure of all of them.

    Runs of one recipe share its colour and dash and differ in their marker. When all are of one recipe,
    each run has a colour of its own, so that seeds can be told apart.
    """
    several = len({str(f["recipe"]) for f in forecasts if f.get("recipe")}) > 1
    seen: dict[str, list[str]] = {}
    styles = []
    for forecast in forecasts:
        run = str(forecast["run"])
        key = f"recipe:{forecast['recipe']}" if several and forecast.get("recipe") else f"run:{run}"
        members = seen.setdefault(key, [])
        index = list(seen).index(key)
        styles.append(style_of(index, theme, marker_offset=len(members)))
        members.append(run)
    return styles


def _add_forecast(spec: Spec, forecast: ForecastDict, style: Style) -> None:
    name = escape_text(short_text(forecast["run"]))
    common = {"legendgroup": str(forecast.get("run_id") or escape_text(forecast["run"])), "showlegend": False}
    grid = forecast.get("grid")
    if grid and grid.get("compute"):
        _add_bands(spec, grid, forecast.get("level", 0.9), style, common)
        _add_law(spec, forecast, style, common)
    _add_points(spec, forecast, style, common)
    # A legend entry of its own shows line and marker together, whatever the traces above consist of.
    spec["data"].append(
        _scatter(
            x=[None],
            y=[None],
            mode="lines+markers",
            name=name,
            line={"color": style.colour, "width": 2},
            marker={"color": style.colour, "symbol": style.marker, "size": 8},
            hoverinfo="skip",
            **{**common, "showlegend": True},
        )
    )


def _add_bands(
    spec: Spec, grid: Mapping[str, Any], level: float, style: Style, common: dict[str, Any]
) -> None:
    for low, high, label, opacity in (
        ("low", "high", f"{level:.0%} band", 0.14),
        ("low50", "high50", "50% band", 0.24),
    ):
        rows = [
            row
            for row in zip(grid["compute"], grid.get(low) or [], grid.get(high) or [], strict=False)
            if row[0] > 0 and None not in row
        ]
        if not rows:
            continue
        compute, lows, highs = (list(column) for column in zip(*rows, strict=True))
        spec["data"].append(
            _scatter(
                x=compute + compute[::-1],
                y=highs + lows[::-1],
                fill="toself",
                fillcolor=rgba(style.colour, opacity),
                line={"width": 0},
                mode="lines",
                hoverinfo="skip",
                name=label,
                **common,
            )
        )


def _add_law(spec: Spec, forecast: ForecastDict, style: Style, common: dict[str, Any]) -> None:
    """The law: solid between the first and the last used point, dashed outside of them."""
    grid = forecast["grid"]
    rows = [
        row
        for row in zip(
            grid["compute"],
            grid["value"],
            grid.get("low") or [None] * len(grid["compute"]),
            grid.get("high") or [None] * len(grid["compute"]),
            strict=True,
        )
        if row[0] > 0 and row[1] is not None
    ]
    used = _used_compute(forecast)
    start = min(used, default=0.0)
    end = float(grid.get("observed_to") or max(used, default=0.0))
    inside = [row for row in rows if start <= row[0] <= end]
    before = [row for row in rows if row[0] < start]
    after = [row for row in rows if row[0] > end]
    if inside:
        # The parts share their end points, so that no gap shows between solid and dashed.
        before, after = (before + inside[:1] if before else []), (inside[-1:] + after if after else [])
    for part, kind, line in (
        (before, "law, before the window", {"color": style.colour, "width": 1.5, "dash": style.dash}),
        (inside, "fit", {"color": style.colour, "width": 2.5}),
        (after, "extrapolation", {"color": style.colour, "width": 2, "dash": style.dash}),
    ):
        if part:
            spec["data"].append(_law_trace(part, kind, line, forecast, common))


def _law_trace(
    rows: Sequence[tuple[Any, ...]],
    kind: str,
    line: dict[str, Any],
    forecast: ForecastDict,
    common: dict[str, Any],
) -> dict[str, Any]:
    # Names go through customdata: a "%{x}" in a name would be filled in if it stood in the template.
    # No <b> or <sup>: plotly styles those inline, which a strict content policy forbids. <br> is fine.
    head = f"{escape_text(forecast['run'])}<br>{kind}"
    level = f"{forecast.get('level', 0.9):.0%}"
    texts = [
        f"{head}<br>{number_text(c)} {unit_label(forecast['unit'])}: {value:.3f}{_interval(low, high, level)}"
        for c, value, low, high in rows
    ]
    return _scatter(
        x=[row[0] for row in rows],
        y=[row[1] for row in rows],
        mode="lines",
        name=kind,
        line=line,
        customdata=texts,
        hovertemplate="%{customdata}<extra></extra>",
        **common,
    )


def _add_points(spec: Spec, forecast: ForecastDict, style: Style, common: dict[str, Any]) -> None:
    for wanted in (True, False):
        rows = [p for p in _points(forecast) if p.used is wanted and p.compute > 0]
        if not rows:
            continue
        bars = [p.interval(forecast.get("level", 0.9)) for p in rows]
        spec["data"].append(
            _scatter(
                x=[p.compute for p in rows],
                y=[p.pass_rate for p in rows],
                mode="markers",
                name="used points" if wanted else "points outside the fit",
                marker={
                    "symbol": style.marker if wanted else f"{style.marker}-open",
                    "color": style.colour,
                    "size": 7,
                    "line": {"width": 1.2, "color": style.colour},
                },
                error_y=_error_bars(rows, bars, style.colour),
                customdata=[_point_text(forecast, p, bar) for p, bar in zip(rows, bars, strict=True)],
                hovertemplate="%{customdata}<extra></extra>",
                **common,
            )
        )


def _scatter(**fields: Any) -> dict[str, Any]:
    """A scatter trace. Numbers are cut to six digits, finer than any screen: they are most of its size."""
    fields |= {axis: [_short(value) for value in fields[axis]] for axis in ("x", "y")}
    return {"type": "scatter", **fields}


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.6g}")


@dataclass(frozen=True)
class _Point:
    compute: float
    pass_rate: float
    used: bool
    n_trials: int | None

    def interval(self, level: float) -> tuple[float, float] | None:
        return binomial_interval(self.pass_rate, self.n_trials, level) if self.n_trials else None


def _points(forecast: ForecastDict) -> list[_Point]:
    points = forecast.get("points") or {}
    compute = points.get("compute") or []
    blank: list[None] = [None] * len(compute)
    rows = zip(
        compute,
        points.get("pass_rate") or [],
        points.get("used") or [True] * len(compute),
        points.get("n_prompts") or blank,
        points.get("n_samples") or blank,
        strict=False,
    )
    return [
        _Point(float(c), float(r), bool(used), int(prompts) * int(samples or 1) if prompts else None)
        for c, r, used, prompts, samples in rows
    ]


def _used_compute(forecast: ForecastDict) -> list[float]:
    return [p.compute for p in _points(forecast) if p.used and p.compute > 0]


def _error_bars(
    rows: list[_Point], bars: list[tuple[float, float] | None], colour: str
) -> dict[str, object] | None:
    if not any(bars):
        return None
    return {
        "type": "data",
        "symmetric": False,
        "array": [bar[1] - p.pass_rate if bar else 0.0 for p, bar in zip(rows, bars, strict=True)],
        "arrayminus": [p.pass_rate - bar[0] if bar else 0.0 for p, bar in zip(rows, bars, strict=True)],
        "color": rgba(colour, 0.5),
        "thickness": 1,
        "width": 2,
    }


def _point_text(forecast: ForecastDict, point: _Point, bar: tuple[float, float] | None) -> str:
    kind = "measured" if point.used else "measured, not in the fit"
    text = (
        f"{escape_text(forecast['run'])}<br>{kind}<br>"
        f"{number_text(point.compute)} {unit_label(forecast['unit'])}: {point.pass_rate:.3f}"
    )
    if bar is None:
        return text
    level = f"{forecast.get('level', 0.9):.0%}"
    return f"{text}{_interval(*bar, level)}<br>{point.n_trials:,} samples graded"


def _interval(low: float | None, high: float | None, level: str) -> str:
    return "" if low is None or high is None else f"<br>{level}: {low:.3f} to {high:.3f}"


def _baseline_value(baseline: float | ForecastDict | None) -> float | None:
    if baseline is None:
        return None
    if isinstance(baseline, Mapping):
        return float(baseline["parameters"]["A"]["value"])
    return float(baseline)


def _set_axes(
    spec: Spec,
    forecasts: Sequence[ForecastDict],
    unit: str,
    reference: float | None,
    budget: float | None,
) -> None:
    compute: list[float] = [budget] if budget and budget > 0 else []
    rates: list[float] = [reference] if reference is not None else []
    for forecast in forecasts:
        points = [p for p in _points(forecast) if p.compute > 0]
        grid = forecast.get("grid") or {}
        compute += [p.compute for p in points] + [c for c in grid.get("compute") or [] if c > 0]
        rates += [p.pass_rate for p in points]
        rates += [r for key in ("value", "low", "high") for r in grid.get(key) or [] if r is not None]
    x: dict[str, Any] = {
        "type": "log",
        "title": {"text": f"compute ({unit_label(unit)}, log scale)"},
        "exponentformat": exponent_format(unit),
        "minor": {"ticks": "outside", "ticklen": 3},
    }
    y: dict[str, Any] = {"title": {"text": "held-out pass rate"}, "tickformat": ".2~f"}
    if compute:
        # Ranges of a log axis are log10 of compute (github.com/plotly/plotly.js/issues/1561).
        low, high = math.log10(min(compute)), math.log10(max(compute))
        pad = max(0.02 * (high - low), 0.02)
        x["range"] = [low - pad, high + pad]
    if rates:
        pad = max(0.05 * (max(rates) - min(rates)), 0.01)
        y["range"] = [max(0.0, min(rates) - pad), min(1.02, max(rates) + pad)]
    spec["layout"] |= {"xaxis": x, "yaxis": y}


def _add_baseline(
    spec: Spec,
    value: float,
    margin: float,
    baseline: float | ForecastDict | None,
    palette: Palette,
) -> None:
    name = short_text(baseline["run"]) if isinstance(baseline, Mapping) else "baseline"
    spec["layout"]["shapes"].append(
        {
            "type": "rect",
            "xref": "paper",
            "x0": 0,
            "x1": 1,
            "y0": value - margin,
            "y1": value,
            "fillcolor": rgba(palette.baseline, 0.16),
            "line": {"width": 0},
            "layer": "below",
            "name": "baseline margin",
        }
    )
    spec["layout"]["shapes"].append(
        {
            "type": "line",
            "xref": "paper",
            "x0": 0,
            "x1": 1,
            "y0": value,
            "y1": value,
            "line": {"color": palette.baseline, "width": 1.5, "dash": "dashdot"},
            "label": {
                "text": f"{escape_text(name)} {value:.3f}, margin {margin:.3g}",
                "textposition": "start",
                "yanchor": "bottom",
                "font": {"size": 11, "color": palette.muted},
            },
            "name": "baseline",
        }
    )


def _add_budget(spec: Spec, budget: float, palette: Palette) -> None:
    spec["layout"]["shapes"].append(
        {
            "type": "line",
            "yref": "paper",
            "x0": budget,
            "x1": budget,
            "y0": 0,
            "y1": 1,
            "line": {"color": palette.muted, "width": 1.5, "dash": "dot"},
            "label": {
                "text": f"budget {number_text(budget)}",
                # Low down: curves rise, and the corner above the budget is where they end.
                "textposition": "start",
                "textangle": 0,
                "xanchor": "right",
                "yanchor": "bottom",
                "padding": 6,
                "font": {"size": 11, "color": palette.muted},
            },
            "name": "budget",
        }
    )


def _add_notes(spec: Spec, forecasts: Sequence[ForecastDict], palette: Palette) -> None:
    off_axis = [p.pass_rate for f in forecasts for p in _points(f) if p.compute <= 0]
    if not forecasts:
        text, place = "No curves chosen", {"x": 0.5, "y": 0.5, "xanchor": "center", "yanchor": "middle"}
    elif off_axis:
        scores = ", ".join(f"{rate:.3f}" for rate in off_axis[:3]) + (", …" if len(off_axis) > 3 else "")
        noun = "evaluation" if len(off_axis) == 1 else "evaluations"
        text = f"{len(off_axis)} {noun} at zero compute,<br>not on a log axis: {scores}"
        # Where a rising curve leaves room.
        place = {"x": 0.01, "y": 0.99, "xanchor": "left", "yanchor": "top"}
    else:
        return
    spec["layout"]["annotations"].append(
        dict(
            text=text,
            xref="paper",
            yref="paper",
            showarrow=False,
            align="left",
            font={"size": 11 if off_axis else 15, "color": palette.muted},
            bgcolor=rgba(palette.paper, 0.7),
            **place,
        )
    )
