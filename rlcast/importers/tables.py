"""Tables that are logs (one row a training step, sparse scores): CSV, TSV, Parquet, W&B's exports.

A table with a compute column is a curve, and `rlcast.tables` reads it. This file reads the others.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rlcast.errors import InputError
from rlcast.importers.lines import lines_of
from rlcast.importers.rows import Row
from rlcast.importers.values import RUN_KEYS, STEP_KEYS, axis_of, numbers, run_of, step_of
from rlcast.tables import ALIASES, UNIT_COLUMNS

#: Columns that W&B adds to a table export; they are not metrics of the run.
_WANDB_EXTREMES = ("__MIN", "__MAX")
_WANDB_COLUMN = re.compile(r"^(?P<run>.+?) - (?P<key>[^\s].*)$")


def header_of(path: Path) -> tuple[list[str], str]:
    """Column names of a CSV file and its delimiter."""
    first = next((line for line in lines_of(path) if line.strip()), "")
    delimiter = max(",\t;", key=first.count)
    return [name.strip() for name in next(csv.reader([first], delimiter=delimiter), [])], delimiter


def is_curve(header: list[str]) -> bool:
    """Whether the table names its compute, so that it is a curve and not a log."""
    names = {name.strip().lower().replace("-", "_").replace(" ", "_") for name in header}
    return bool(names & {*ALIASES["compute"], *UNIT_COLUMNS})


def names_score(header: list[str]) -> bool:
    """Whether a column has one of the usual names of a curve's pass rate."""
    return bool({name.strip().lower().replace("-", "_") for name in header} & set(ALIASES["pass_rate"]))


def is_wandb_export(header: list[str]) -> bool:
    return len(header) > 1 and any(_WANDB_COLUMN.match(name) for name in header[1:])


def has_steps(header: list[str]) -> bool:
    return any(name.lower() in STEP_KEYS for name in header)


def csv_rows(path: Path) -> Iterator[Row]:
    """Rows of a CSV or TSV file; a cell that is empty or no number is not a value."""
    header, delimiter = header_of(path)
    reader = csv.DictReader(lines_of(path), fieldnames=header, delimiter=delimiter)
    try:
        next(reader, None)
        for cells in reader:
            data: dict[str, Any] = {key: _cell(value) for key, value in cells.items() if key}
            yield _row(data)
    except csv.Error as error:
        raise InputError(f"{path} is not a CSV file ({error})", "file") from None


def _cell(text: Any) -> Any:
    try:
        return float(text)
    except (TypeError, ValueError):
        return text


def _row(data: dict[str, Any]) -> Row:
    # The step's column may be spelt "Step"; all else keeps its spelling, since --y names it.
    lower = {key.lower(): value for key, value in data.items() if key.lower() in (*STEP_KEYS, *RUN_KEYS)}
    return Row(step_of(lower), numbers(data), run_of(lower), axis=axis_of(lower))


def wandb_export_rows(path: Path) -> Iterator[Row]:
    """W&B's export of a chart: "Step" and "<run> - <key>" for each run, with __MIN and __MAX."""
    for row in csv_rows(path):
        by_run: dict[str, dict[str, float]] = {}
        for column, value in row.values.items():
            found = _WANDB_COLUMN.match(column)
            if found and not column.endswith(_WANDB_EXTREMES):
                by_run.setdefault(found["run"], {})[found["key"]] = value
        for run, values in by_run.items():
            yield Row(row.step, values, run)


def parquet_frame(path: Path) -> Any:
    """The frame of a Parquet file, read by what is installed."""
    for library in ("polars", "pyarrow.parquet", "pandas"):
        try:
            reader = __import__(library, fromlist=["read_parquet"])
        except ImportError:
            continue
        try:
            return reader.read_table(path) if library == "pyarrow.parquet" else reader.read_parquet(path)
        except Exception as error:
            # Each library has its own error classes for a file that is no Parquet file.
            raise InputError(f"{path} is not a Parquet file ({str(error).splitlines()[0]})", "file") from None
    raise InputError(f"{path}: reading Parquet needs polars, pyarrow or pandas; pip install polars", "file")


def parquet_rows(path: Path) -> Iterator[Row]:
    import narwhals as nw

    for data in nw.from_native(parquet_frame(path), eager_only=True).iter_rows(named=True):
        yield _row({key: value for key, value in data.items() if value is not None})
