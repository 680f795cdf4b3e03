"""Forecasts in a notebook: frames, files and arrays give the same forecast as the command line."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import polars as pl
import pytest

from rlcast import forecast
from rlcast.errors import InputError

SCALERL = Path(__file__).parents[2] / "rlcast" / "data" / "curves" / "scalerl_8b_gpu_hours.csv"
RUN = "8B-dense-bs2048"


def test_the_same_forecast_from_everything_that_holds_the_points():
    frame = pd.read_csv(SCALERL)
    found = [
        forecast(source, max_compute=5e4, at=1e5)[RUN]["parameters"]
        for source in (SCALERL, frame, pl.read_csv(SCALERL))
    ]
    arrays = forecast(frame["compute"], frame["pass_rate"], max_compute=5e4, at=1e5)
    assert found[0] == found[1] == found[2] == arrays["curve"]["parameters"]


def test_missing_scores_are_rows_without_an_evaluation():
    frame = pd.read_csv(SCALERL)
    sparse = pd.concat([frame, frame.assign(compute=frame["compute"] + 1, pass_rate=float("nan"))])
    assert forecast(sparse)[RUN]["n_points"] == len(frame)


def test_a_figure_and_a_summary():
    found = forecast(SCALERL, max_compute=5e4)
    assert found.figure().layout.xaxis.type == "log"
    assert "A is identified" in found.summary()


def test_errors_name_the_field():
    with pytest.raises(InputError, match="no pass_rate column"):
        forecast(pd.DataFrame({"gpu_hours": [1.0]}))
    with pytest.raises(InputError, match="give one a point"):
        forecast([1.0, 2.0], [0.1])
    with pytest.raises(InputError, match="is not in the data"):
        forecast(SCALERL, run="other")
