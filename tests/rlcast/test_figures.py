"""What a reader of the figure sees: which part is measured, fitted, extrapolated, and how sure it is."""

from __future__ import annotations

import json
import math
from typing import Any

import plotly.graph_objects as go
import pytest

from rlcast.figure_style import number_text
from rlcast.figures import binomial_interval, forecast_figure, forecast_spec

EVIL = '<img src=x onerror="alert(1)"><a href="javascript:alert(1)">%{x}</a> & co'


def sigmoid(compute: float) -> float:
    return 0.3 + 0.4 / (1 + (1000 / compute) ** 1.2)


def a_forecast(run: str = "run-a", unit: str = "gpu_hours", **extra: Any) -> dict[str, Any]:
    """A forecast as `Forecast.to_dict()` gives it, from a law written here by hand."""
    points = [100.0 * 2**i for i in range(8)]  # 100 to 12,800; used 400 to 6,400
    grid = [100.0 * 10 ** (i / 20) for i in range(61)]  # 100 to 100,000
    return {
        "run": run,
        "law": "sigmoid",
        "unit": unit,
        "level": 0.9,
        "window": {"min_compute": 400.0, "max_compute": 6400.0, "n_used": 5, "n_total": 8},
        "parameters": {"A": {"value": 0.7, "low": 0.68, "high": 0.72}},
        "grid": {
            "compute": grid,
            "value": [sigmoid(c) for c in grid],
            "low": [sigmoid(c) - 0.02 for c in grid],
            "high": [sigmoid(c) + 0.02 for c in grid],
            "low50": [sigmoid(c) - 0.01 for c in grid],
            "high50": [sigmoid(c) + 0.01 for c in grid],
            "observed_to": 6400.0,
        },
        "points": {
            "compute": points,
            "pass_rate": [sigmoid(c) for c in points],
            "used": [400 <= c <= 6400 for c in points],
        },
        **extra,
    }


def named(figure: go.Figure, name: str) -> list[Any]:
    return [trace for trace in figure.data if trace.name == name]


def legend(figure: go.Figure) -> list[Any]:
    return [trace for trace in figure.data if trace.showlegend]


def test_the_fit_is_solid_where_points_support_it_and_dashed_beyond() -> None:
    figure = forecast_figure([a_forecast()])
    (fit,) = named(figure, "fit")
    (beyond,) = named(figure, "extrapolation")
    (before,) = named(figure, "law, before the window")
    assert fit.line.dash in (None, "solid")
    assert beyond.line.dash not in (None, "solid")
    assert before.line.dash not in (None, "solid")
    assert 400 <= min(fit.x) < 450
    assert 5700 < max(fit.x) <= 6400
    # No gap between the parts: the dashed line starts where the solid one ends.
    assert beyond.x[0] == fit.x[-1]
    assert max(beyond.x) == pytest.approx(100_000)


def test_axis_is_logarithmic_and_its_range_is_in_decades() -> None:
    figure = forecast_figure([a_forecast()], budget=1e6)
    axis = figure.layout.xaxis
    assert axis.type == "log"
    assert 1.7 < axis.range[0] < 2.0
    assert 6.0 < axis.range[1] < 6.3
    assert "GPU-hours" in axis.title.text


def test_points_outside_the_fit_are_hollow() -> None:
    figure = forecast_figure([a_forecast()])
    (used,) = named(figure, "used points")
    (unused,) = named(figure, "points outside the fit")
    assert sorted(used.x) == [400, 800, 1600, 3200, 6400]
    assert sorted(unused.x) == [100, 200, 12800]
    assert unused.marker.symbol == f"{used.marker.symbol}-open"


def test_wide_band_is_lighter_than_the_50_percent_band() -> None:
    figure = forecast_figure([a_forecast()])
    (wide,) = named(figure, "90% band")
    (half,) = named(figure, "50% band")

    def opacity(colour: str) -> float:
        return float(colour.rstrip(")").split(",")[-1])

    assert opacity(wide.fillcolor) < opacity(half.fillcolor)
    heights = [
        max(y for x, y in zip(band.x, band.y, strict=True) if x == 1000.0) - sigmoid(1000.0)
        for band in (wide, half)
    ]
    assert heights == pytest.approx([0.02, 0.01])


def test_error_bars_only_where_the_number_of_samples_is_known() -> None:
    without = forecast_figure([a_forecast()])
    assert all(t.error_y.array is None for t in without.data)
    known = a_forecast()
    known["points"]["n_prompts"] = [500, None, 500, None, 500, 500, 500, 500]
    known["points"]["n_samples"] = [4, None, 4, None, 1, 1, 1, 1]
    (used,) = named(forecast_figure([known]), "used points")
    by_compute = dict(zip(used.x, used.error_y.array, strict=True))
    assert by_compute[800.0] == 0
    # Normal approximation by hand, 90%: 1.645 * sqrt(p (1 - p) / n).
    p = sigmoid(400.0)
    assert by_compute[400.0] == pytest.approx(1.645 * math.sqrt(p * (1 - p) / 2000), rel=0.03)
    p = sigmoid(1600.0)
    assert by_compute[1600.0] == pytest.approx(1.645 * math.sqrt(p * (1 - p) / 500), rel=0.03)


def test_wilson_interval_against_published_values() -> None:
    # Newcombe, Statistics in Medicine 17 (1998), table I: 81 of 263 and 0 of 20 at 95%.
    assert binomial_interval(81 / 263, 263, 0.95) == pytest.approx((0.2553, 0.3662), abs=1e-4)
    assert binomial_interval(0.0, 20, 0.95) == pytest.approx((0.0, 0.1611), abs=1e-4)


def test_points_at_zero_compute_are_counted_in_a_note() -> None:
    forecast = a_forecast()
    forecast["points"]["compute"].insert(0, 0.0)
    forecast["points"]["pass_rate"].insert(0, 0.291)
    forecast["points"]["used"].insert(0, True)
    figure = forecast_figure([forecast])
    assert all(x is None or x > 0 for trace in figure.data for x in trace.x)
    (note,) = figure.layout.annotations
    assert note.text.startswith("1 evaluation at zero compute")
    assert "0.291" in note.text


def test_names_are_text_in_legend_hover_and_baseline() -> None:
    figure = forecast_figure([a_forecast(EVIL)], baseline=a_forecast(EVIL))
    shown = [t.name for t in figure.data]
    shown += [text for t in figure.data for text in (t.customdata if t.customdata is not None else ())]
    shown += [t.hovertemplate for t in figure.data if t.hovertemplate]
    shown += [s.label.text for s in figure.layout.shapes if s.label.text]
    for text in shown:
        plain = text.replace("<br>", "").replace("<extra></extra>", "")
        assert "<" not in plain
    assert all("%{x}" not in (t.hovertemplate or "") for t in figure.data)
    assert any("&lt;img src=x" in t.name for t in legend(figure))


def test_runs_of_a_recipe_share_its_colour_and_differ_in_their_marker() -> None:
    runs = [
        a_forecast("a-1", recipe="a", run_id="1"),
        a_forecast("a-2", recipe="a", run_id="2"),
        a_forecast("b-1", recipe="b", run_id="3"),
    ]
    entries = legend(forecast_figure(runs))
    assert [t.name for t in entries] == ["a-1", "a-2", "b-1"]
    assert entries[0].line.color == entries[1].line.color != entries[2].line.color
    assert entries[0].marker.symbol != entries[1].marker.symbol


def test_seeds_of_a_single_recipe_can_be_told_apart() -> None:
    entries = legend(forecast_figure([a_forecast(f"a-{i}", recipe="a") for i in range(3)]))
    assert len({t.line.color for t in entries}) == 3


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_fifty_recipes_do_not_share_a_look(theme: Any) -> None:
    entries = legend(forecast_figure([a_forecast(f"r{i}", recipe=f"r{i}") for i in range(50)], theme=theme))
    assert len({(t.line.color, t.marker.symbol) for t in entries}) == 50


def test_colours_are_far_enough_from_the_background_in_both_themes() -> None:
    for theme in ("light", "dark"):
        figure = forecast_figure([a_forecast(f"r{i}") for i in range(7)], theme=theme)
        background = luminance(figure.layout.template.layout.paper_bgcolor)
        for entry in legend(figure):
            lighter, darker = sorted((luminance(entry.line.color), background), reverse=True)
            assert (lighter + 0.05) / (darker + 0.05) >= 2.2, (theme, entry.line.color)


def luminance(colour: str) -> float:
    """Relative luminance of WCAG 2."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_baseline_strip_spans_the_margin_below_the_reference() -> None:
    figure = forecast_figure([a_forecast()], baseline=0.65, margin=0.03, budget=50_000)
    shapes = {s.name: s for s in figure.layout.shapes}
    assert (shapes["baseline margin"].y0, shapes["baseline margin"].y1) == (pytest.approx(0.62), 0.65)
    assert "0.650" in shapes["baseline"].label.text
    assert (shapes["budget"].x0, shapes["budget"].x1) == (50_000, 50_000)
    assert "50,000" in shapes["budget"].label.text


def test_json_is_strict_although_some_bands_are_open() -> None:
    forecast = a_forecast()
    forecast["grid"]["low"][0] = forecast["grid"]["high50"][3] = None

    def refuse(word: str) -> None:
        raise AssertionError(word)

    text = json.dumps(forecast_spec([forecast], baseline=0.6, budget=1e4), allow_nan=False)
    assert len(json.loads(text, parse_constant=refuse)["data"]) > 4


def test_a_forecast_without_intervals_still_shows_its_law() -> None:
    forecast = a_forecast()
    for key in ("low", "high", "low50", "high50"):
        del forecast["grid"][key]
    figure = forecast_figure([forecast])
    assert named(figure, "fit")
    assert not named(figure, "90% band")


def test_points_show_when_there_is_no_forecast_yet() -> None:
    forecast = a_forecast(grid=None)
    figure = forecast_figure([forecast])
    assert len(named(figure, "used points")[0].x) == 5
    assert not named(figure, "fit")


def test_two_units_on_one_axis_are_refused() -> None:
    with pytest.raises(ValueError, match="gpu_hours and flops"):
        forecast_figure([a_forecast(), a_forecast("b", unit="flops")])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (0.0213, "0.0213"),
        (1.5, "1.5"),
        (999.5, "999.5"),
        (100_000, "100,000"),
        (1.274600e16, "1.27×10¹⁶"),
        (2e20, "2×10²⁰"),
        (3.2e-5, "3.2×10⁻⁵"),
    ],
)
def test_compute_is_written_as_people_read_it(value: float, text: str) -> None:
    assert number_text(value) == text


def test_a_notebook_s_figure_is_the_dashboard_s() -> None:
    """The same traces and layout; plotly checks every field's name and value on the way."""
    spec = forecast_spec([a_forecast(), a_forecast("b")], baseline=a_forecast("c"), budget=1e4, theme="dark")
    figure = forecast_figure(
        [a_forecast(), a_forecast("b")], baseline=a_forecast("c"), budget=1e4, theme="dark"
    )
    shown = json.loads(figure.to_json())
    assert [t["name"] for t in shown["data"]] == [t["name"] for t in spec["data"]]
    assert shown["layout"]["xaxis"] == spec["layout"]["xaxis"]
    assert shown["layout"]["shapes"] == spec["layout"]["shapes"]


def test_nothing_chosen_says_so() -> None:
    (note,) = forecast_figure([]).layout.annotations
    assert note.text == "No curves chosen"


def test_the_same_forecasts_give_the_same_figure() -> None:
    first, second = (json.dumps(forecast_spec([a_forecast()], baseline=0.6, budget=1e4)) for _ in range(2))
    assert first == second
