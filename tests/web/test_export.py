"""CSV files for spreadsheets."""

from __future__ import annotations

import csv
import io

import pytest

from web.export import points_csv, safe_text


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠"])
def test_text_that_a_spreadsheet_would_run_is_quoted(start: str) -> None:
    assert safe_text(f'{start}HYPERLINK("http://x")').startswith("'")


def test_plain_names_stay_as_they_are() -> None:
    assert safe_text("8B-dense, seed 1") == "8B-dense, seed 1"


def test_points_read_back_with_names_that_contain_separators() -> None:
    forecast = {
        "run": 'a "quoted", name',
        "unit": "gpu_hours",
        "inputs_sha256": "ab" * 32,
        "points": {"compute": [1.5, 3.0], "pass_rate": [-0.0, 0.25], "used": [False, True]},
    }
    rows = list(csv.DictReader(io.StringIO(points_csv([forecast]))))
    assert [row["run"] for row in rows] == ['a "quoted", name'] * 2
    assert [float(row["compute"]) for row in rows] == [1.5, 3.0]
    assert [row["in_fit"] for row in rows] == ["no", "yes"]
    assert [float(row["pass_rate"]) for row in rows] == [0.0, 0.25]
