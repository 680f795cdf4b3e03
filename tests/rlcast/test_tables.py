"""What the table reader understands, and how it refuses what it does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlcast.errors import InputError
from rlcast.tables import read_table


@pytest.fixture
def table(tmp_path: Path):
    def write(text: str, name: str = "curve.csv", encoding: str = "utf-8") -> Path:
        path = tmp_path / name
        path.write_bytes(text.encode(encoding))
        return path

    return write


def test_usual_columns(table):
    found = read_table(
        table(
            "run,compute,compute_unit,pass_rate\na,10,gpu_hours,0.1\nb,5,gpu_hours,0.2\na,20,gpu_hours,0.3\n"
        )
    )
    assert list(found.runs) == ["a", "b"]
    a = found.runs["a"]
    assert (a.compute, a.pass_rate, a.unit) == ([10.0, 20.0], [0.1, 0.3], "gpu_hours")


@pytest.mark.parametrize(
    ("header", "unit"),
    [
        ("gpu_hours,accuracy", "gpu_hours"),
        ("GPU-hours,pass@1", "gpu_hours"),
        ("flops,acc", "flops"),
        ("tokens,score", "tokens"),
    ],
)
def test_names_that_people_use(table, header, unit):
    [rows] = read_table(table(f"{header}\n1,0.1\n2,0.2\n")).runs.values()
    assert (rows.unit, rows.compute, rows.pass_rate) == (unit, [1.0, 2.0], [0.1, 0.2])


def test_the_run_is_named_after_the_file_when_no_column_tells(table):
    assert list(read_table(table("gpu_hours,pass_rate\n1,0.1\n", "my-run.csv")).runs) == ["my-run"]


def test_columns_can_be_named(table):
    path = table("hours,reward,pass_rate\n1,0.9,0.1\n2,0.8,0.2\n")
    [rows] = read_table(path, x="hours", y="reward", unit="gpu_hours").runs.values()
    assert (rows.compute, rows.pass_rate, rows.unit) == ([1.0, 2.0], [0.9, 0.8], "gpu_hours")


def test_a_compute_column_named_on_purpose_is_a_unit_of_its_own(table):
    [rows] = read_table(table("my_hours,pass_rate\n1,0.1\n"), x="my_hours").runs.values()
    assert rows.unit == "my_hours"


@pytest.mark.parametrize(
    "text",
    [
        "﻿gpu_hours,pass_rate\r\n1,0.1\r\n2,0.2\r\n",
        "gpu_hours\tpass_rate\n1\t0.1\n2\t0.2\n",
        "gpu_hours;pass_rate\n1;0.1\n2;0.2\n",
        "gpu_hours , pass_rate\n 1 , 0.1 \n\n2,0.2\n\n",
    ],
    ids=["bom-crlf", "tabs", "semicolons", "spaces-and-blank-lines"],
)
def test_the_forms_that_spreadsheets_write(table, text):
    [rows] = read_table(table(text)).runs.values()
    assert (rows.compute, rows.pass_rate) == ([1.0, 2.0], [0.1, 0.2])


def test_percent_is_asked_for_never_guessed(table):
    path = table("gpu_hours,pass_rate\n1,10\n2,45.5\n")
    with pytest.raises(InputError, match=r"line 2: pass_rate is 10, outside 0 to 1.*--percent"):
        read_table(path)
    [rows] = read_table(path, percent=True).runs.values()
    assert rows.pass_rate == pytest.approx([0.10, 0.455])


def test_rows_without_a_score_are_left_out_and_counted(table):
    found = read_table(table("step,gpu_hours,pass_rate\n1,1,\n2,2,0.2\n3,3,\n"))
    assert found.runs["curve"].pass_rate == [0.2]
    assert found.notes == ["2 rows without a value in 'pass_rate' left out"]


@pytest.mark.parametrize(
    ("text", "field", "words"),
    [
        ("run,compute,compute_unit\na,1,gpu_hours\n", "pass_rate", "no pass_rate column.*--y"),
        ("run,pass_rate\na,0.1\n", "compute", "no compute column.*--x"),
        ("run,compute,pass_rate\na,1,0.1\n", "compute_unit", "compute_unit column or pass --unit"),
        ("gpu_hours,pass_rate\n1,nan\n", "pass_rate", "line 2: pass_rate is 'nan', not a finite number"),
        ("gpu_hours,pass_rate\ninf,0.1\n", "gpu_hours", "line 2: gpu_hours is 'inf', not a finite number"),
        ("gpu_hours,pass_rate\nsoon,0.1\n", "gpu_hours", "line 2: gpu_hours is 'soon', not a number"),
        ("gpu_hours,pass_rate\n-1,0.1\n", "compute", "cannot be negative"),
        ("gpu_hours,pass_rate\n1,-0.1\n", "pass_rate", "outside 0 to 1"),
        ("gpu_hours,pass_rate\n1,1e999\n", "pass_rate", "not a finite number"),
        (
            "run,compute,compute_unit,pass_rate\na,1,gpu_hours,0.1\na,2,flops,0.2\n",
            "compute_unit",
            "line 3: run 'a' has compute in gpu_hours and in flops",
        ),
        (
            "run,compute,compute_unit,pass_rate\na,1,parsecs,0.1\n",
            "compute_unit",
            "unit 'parsecs' is not known",
        ),
        (
            "gpu_hours,pass_rate,benchmark\n1,0.1,aime\n2,0.2,math\n",
            "benchmark",
            "scores of 'aime' and of 'math'",
        ),
        ("", "file", "is empty"),
        ("gpu_hours,pass_rate\n", "pass_rate", "no row with a value"),
    ],
)
def test_bad_input_names_line_field_and_remedy(table, text, field, words):
    with pytest.raises(InputError, match=words) as caught:
        read_table(table(text))
    assert caught.value.field == field
    assert "\n" not in str(caught.value)


def test_files_that_are_no_text(table, tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read_table(tmp_path / "absent.csv")
    with pytest.raises(InputError, match="is a folder"):
        read_table(tmp_path)
    with pytest.raises(InputError, match="not UTF-8"):
        read_table(table("gpu_hours,pass_rate,é\n1,0.1,é\n", encoding="latin-1"))
