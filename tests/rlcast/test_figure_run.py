"""A run's residuals and the history of its forecast, against a law written here by hand."""

from __future__ import annotations

from typing import Any

import pytest

from rlcast.figure_run import history_figure, residual_figure
from rlcast.figure_style import log_ticks


def law(compute: float) -> float:
    return 0.3 + 0.4 / (1 + (1000 / compute) ** 1.2)


def a_forecast(offsets: list[float]) -> dict[str, Any]:
    points = [150.0 * 2**i for i in range(len(offsets))]
    grid = [100.0 * 10 ** (i / 100) for i in range(301)]
    return {
        "run": "a",
        "unit": "gpu_hours",
        "grid": {"compute": grid, "value": [law(c) for c in grid]},
        "points": {
            "compute": [0.0, *points],
            "pass_rate": [0.3, *(law(c) + d for c, d in zip(points, offsets, strict=True))],
            "used": [True, *(i > 0 for i in range(len(offsets)))],
        },
    }


def test_residuals_are_measured_minus_law_at_each_point() -> None:
    figure = residual_figure(a_forecast([0.02, -0.01, 0.0, 0.03]))
    used, unused = figure.data
    assert list(used.x) == [300, 600, 1200]
    assert list(used.y) == pytest.approx([-0.01, 0.0, 0.03], abs=1e-5)
    assert list(unused.y) == pytest.approx([0.02], abs=1e-5)
    assert unused.marker.symbol.endswith("-open")


def test_points_beyond_the_grid_are_not_given_a_residual() -> None:
    forecast = a_forecast([0.0] * 4)
    forecast["points"]["compute"][-1] = 1e9
    assert sum(len(trace.x) for trace in residual_figure(forecast).data) == 3


def test_history_keeps_guesses_apart_from_what_was_identified() -> None:
    def at(compute: float, value: float, state: str) -> dict[str, Any]:
        return {
            "run": "a",
            "unit": "gpu_hours",
            "level": 0.9,
            "grid": {"observed_to": compute},
            "parameters": {"A": {"value": value, "low": value - 0.1, "high": None}},
            "verdict": {"state": state},
        }

    figure = history_figure(
        [at(100, 1.0, "not_identified"), at(200, 0.9, "lower_bound_only"), at(400, 0.7, "identified")]
    )
    identified, unsure = figure.data
    assert list(identified.x) == [400]
    assert list(unsure.x) == [100, 200]
    assert unsure.marker.symbol == "circle-open"
    assert list(identified.error_y.arrayminus) == pytest.approx([0.1])
    # Nothing is known above: no bar is drawn there.
    assert list(identified.error_y.array) == [0.0]


@pytest.mark.parametrize(
    ("low", "high", "texts"),
    [
        (1.1e4, 9.5e4, ["20k", "50k"]),
        (0.012, 0.12, ["0.02", "0.05", "0.1"]),
        (900, 1.2e5, ["1k", "3k", "10k", "30k", "100k"]),
        (1e2, 1e9, ["100", "10k", "1M", "1×10⁸"]),
        (3e18, 9e19, ["5×10¹⁸", "1×10¹⁹", "2×10¹⁹", "5×10¹⁹"]),
    ],
)
def test_ticks_of_small_charts_are_few_and_round(low: float, high: float, texts: list[str]) -> None:
    ticks = log_ticks(low, high)
    assert ticks["ticktext"] == texts
    assert all(low <= value <= high for value in ticks["tickvals"])
