"""The straightened view, against a law whose line is known."""

from __future__ import annotations

import json
import math
from typing import Any

import plotly.graph_objects as go
import pytest

from rlcast.figure_line import line_spec

EVIL = "<img src=x onerror=alert(1)>"


def a_forecast(run: str = "a") -> dict[str, Any]:
    """R0 0.2, A 0.7, B 1.5, Cmid 1000; points on the law, one below R0, one above A, one at zero compute."""
    compute = [100.0, 1000.0, 10_000.0]
    rates = [0.2 + 0.5 / (1 + (1000 / c) ** 1.5) for c in compute]
    named = {"R0": 0.2, "A": 0.7, "B": 1.5, "Cmid": 1000.0}
    return {
        "run": run,
        "unit": "gpu_hours",
        "parameters": {name: {"value": value, "low": None, "high": None} for name, value in named.items()},
        "grid": {"compute": [100.0, 3000.0, 100_000.0]},
        "points": {
            "compute": [0.0, 50.0, *compute, 20_000.0],
            "pass_rate": [0.2, 0.15, *rates, 0.71],
            "used": [True, True, True, True, False, True],
        },
    }


def test_points_on_the_law_lie_on_a_line_of_slope_b() -> None:
    law, used, unused = line_spec([a_forecast()])["data"]
    slope = math.log(law["y"][1] / law["y"][0]) / math.log(law["x"][1] / law["x"][0])
    assert slope == pytest.approx(1.5)
    assert dict(zip(used["x"], used["y"], strict=True)) == pytest.approx({100.0: 10**-1.5, 1000.0: 1.0})
    assert unused["y"] == pytest.approx([10**1.5])
    assert unused["marker"]["symbol"].endswith("-open")


def test_points_without_a_place_are_counted() -> None:
    (note,) = line_spec([a_forecast()])["layout"]["annotations"]
    assert note["text"].startswith("2 points at or beyond R0 or A")


def test_a_curve_without_a_law_is_named_as_text() -> None:
    young = {**a_forecast(EVIL), "parameters": {}, "grid": None}
    spec = line_spec([young, a_forecast()])
    (note,) = spec["layout"]["annotations"]
    assert "no law to straighten: &lt;img" in note["text"]
    assert "<img" not in json.dumps(spec)
    go.Figure(spec)  # plotly accepts every field
