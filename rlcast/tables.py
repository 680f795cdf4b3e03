"""Reads curves from CSV and TSV files and from data frames, one row an evaluation.

The usual columns are `run, compute, compute_unit, pass_rate`; names that people use for the same
things are understood (`ALIASES`), anything else is named with `x` and `y`. Nothing is guessed in
silence: what cannot be read is refused with the line, the field and the remedy.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from rlcast.errors import InputError

#: Column names for each field, in order of preference. Compared in lower case, with "-" and " " as "_".
ALIASES: dict[str, tuple[str, ...]] = {
    "run": ("run", "run_name", "name", "experiment", "recipe"),
    "pass_rate": (
        "pass_rate",
        "passrate",
        "pass@1",
        "accuracy",
        "acc",
        "score",
        "eval_accuracy",
        "val_accuracy",
        "mean_pass_rate",
    ),
    "compute": ("compute", "c"),
    "compute_unit": ("compute_unit", "unit"),
    "step": ("step", "global_step", "training_step"),
    "benchmark": ("benchmark", "eval_set", "dataset"),
    "n_prompts": ("n_prompts", "prompts"),
    "n_samples": ("n_samples", "samples_per_prompt"),
}

#: Compute columns whose name is their unit.
UNIT_COLUMNS: dict[str, str] = {
    "gpu_hours": "gpu_hours",
    "gpu_h": "gpu_hours",
    "gpuh": "gpu_hours",
    "compute_gpu_hours": "gpu_hours",
    "cpu_hours": "cpu_hours",
    "flops": "flops",
    "training_flops": "flops",
    "tokens": "tokens",
    "samples": "samples",
    "steps": "steps",
    "usd": "usd",
}

UNITS = ("gpu_hours", "cpu_hours", "flops", "tokens", "samples", "steps", "usd")
_UNIT_SPELLINGS = {**UNIT_COLUMNS, "gpu_hour": "gpu_hours", "flop": "flops", "step": "steps"}


@dataclass
class CurveRows:
    """The evaluations of one run as read from a file, in file order.

    `pass_rate` is a fraction in [0, 1]; `compute` is in `unit` (one of `UNITS`, or the name of a
    column that the user chose with `x`).
    `steps` is empty when the file has no step column. `also` holds compute in other units, and `attempts`
    the attempt of each evaluation (empty: all of the first).
    """

    run: str
    unit: str
    benchmark: str | None = None
    compute: list[float] = field(default_factory=list)
    pass_rate: list[float] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    n_prompts: list[int | None] = field(default_factory=list)
    n_samples: list[int | None] = field(default_factory=list)
    also: dict[str, list[float]] = field(default_factory=dict)
    attempts: list[int] = field(default_factory=list)


@dataclass
class Table:
    """The runs of a file, and notes on what was left out (for the user's eyes)."""

    runs: dict[str, CurveRows]
    notes: list[str]


@dataclass(frozen=True)
class Columns:
    """Which column of the header holds which field."""

    compute: str
    pass_rate: str
    run: str | None
    unit: str | None
    fixed_unit: str | None
    step: str | None
    benchmark: str | None
    n_prompts: str | None
    n_samples: str | None


def read_table(
    path: Path | str,
    *,
    x: str | None = None,
    y: str | None = None,
    unit: str | None = None,
    percent: bool = False,
    bounds: tuple[float, float] | None = None,
) -> Table:
    """Reads every run of a CSV or TSV file.

    `x` and `y` name the compute and pass-rate columns when the usual names are not there, `unit` the
    unit of compute when no column tells it, and `percent` says that rates are given in percent. `bounds`
    are those of a score that is no fraction, such as a reward of -1 or 1.

    Raises `InputError` for anything that cannot be read.
    """
    path = Path(path)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return _read(file, path, x=x, y=y, unit=unit, bounds=bounds or _bounds(percent))
    except FileNotFoundError:
        raise InputError(f"{path}: no such file", "file") from None
    except IsADirectoryError:
        raise InputError(f"{path} is a folder; name a CSV file in it", "file") from None
    except PermissionError:
        raise InputError(f"{path}: not readable (check its permissions)", "file") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8 text; export it as CSV in UTF-8", "file") from None
    except csv.Error as error:
        raise InputError(f"{path} is not a CSV file ({error})", "file") from None


def _read(
    file: TextIO, path: Path, *, x: str | None, y: str | None, unit: str | None, bounds: tuple[float, float]
) -> Table:
    head = file.read(64 * 1024)
    file.seek(0)
    first_line = head.splitlines()[0] if head.strip() else ""
    if not first_line.strip():
        raise InputError(f"{path} is empty; it needs a header line and one row an evaluation", "file")
    delimiter = "\t" if first_line.count("\t") > first_line.count(",") else ","
    if first_line.count(";") > first_line.count(delimiter):
        delimiter = ";"
    reader = csv.DictReader(file, delimiter=delimiter)
    header = [name.strip() for name in reader.fieldnames or []]
    reader.fieldnames = header
    columns = find_columns(header, path, x=x, y=y, unit=unit)
    rows = ((f"{path} line {line}", row) for line, row in _numbered(reader))
    return _collect(rows, columns, str(path), path.stem, bounds)


def read_frame(
    frame: Any,
    *,
    x: str | None = None,
    y: str | None = None,
    unit: str | None = None,
    percent: bool = False,
    bounds: tuple[float, float] | None = None,
    name: str = "curve",
) -> Table:
    """Reads every run of a pandas or polars frame (anything narwhals understands).

    A missing score (null or NaN) means "not evaluated at this row". Raises `InputError` like `read_table`.
    """
    import narwhals as nw

    data = nw.from_native(frame, eager_only=True)
    columns = find_columns(list(data.columns), "the frame", x=x, y=y, unit=unit)
    rows = (
        (f"row {number}", {key: _cell(value) for key, value in row.items()})
        for number, row in enumerate(data.iter_rows(named=True))
    )
    return _collect(rows, columns, "the frame", name, bounds or _bounds(percent))


def _cell(value: Any) -> str:
    """A frame's value as the text of a CSV cell; null and NaN are empty."""
    missing = value is None or (isinstance(value, float) and math.isnan(value))
    return "" if missing else str(value)


def _collect(
    rows: Iterator[tuple[str, dict[str, str]]],
    columns: Columns,
    source: str,
    default_run: str,
    bounds: tuple[float, float],
) -> Table:
    runs: dict[str, CurveRows] = {}
    n_blank = 0
    for where, row in rows:
        if not (row.get(columns.pass_rate) or "").strip():
            n_blank += 1
            continue
        _add_row(runs, row, columns, where, default_run, bounds)
    if not runs:
        raise InputError(f"{source} has no row with a value in '{columns.pass_rate}'", "pass_rate")
    notes = [f"{n_blank} rows without a value in '{columns.pass_rate}' left out"] if n_blank else []
    return Table(runs, notes)


def _numbered(reader: csv.DictReader[str]) -> Iterator[tuple[int, dict[str, str]]]:
    for row in reader:
        if any(isinstance(value, str) and value.strip() for value in row.values()):
            yield reader.line_num, row


def _normal(name: str) -> str:
    return name.strip().lower().replace("-", "_").replace(" ", "_")


def find_columns(
    header: list[str], path: Path | str, *, x: str | None, y: str | None, unit: str | None
) -> Columns:
    """Finds the field of each column; explicit `x` and `y` win over the usual names."""
    by_name = {_normal(name): name for name in header}

    def alias(field_name: str) -> str | None:
        return next((by_name[a] for a in ALIASES[field_name] if a in by_name), None)

    def explicit(flag: str, name: str) -> str:
        if name in header:
            return name
        if _normal(name) in by_name:
            return by_name[_normal(name)]
        raise InputError(f"{path} has no column '{name}' ({flag}); it has: {', '.join(header)}", flag)

    pass_rate = explicit("--y", y) if y else alias("pass_rate")
    if pass_rate is None:
        raise InputError(
            f"{path} has no pass_rate column; name the column that holds it with --y "
            f"(columns: {', '.join(header)})",
            "pass_rate",
        )
    compute = explicit("--x", x) if x else alias("compute")
    if compute is None:
        compute = next((by_name[name] for name in UNIT_COLUMNS if name in by_name), None)
    if compute is None:
        raise InputError(
            f"{path} has no compute column; name the column that holds it with --x "
            f"(columns: {', '.join(header)})",
            "compute",
        )
    unit_column = None if unit else alias("compute_unit")
    fixed = _fixed_unit(compute, path, chosen=bool(x), given=unit, has_column=unit_column is not None)
    return Columns(
        compute=compute,
        pass_rate=pass_rate,
        run=alias("run"),
        unit=unit_column,
        fixed_unit=fixed,
        step=alias("step"),
        benchmark=alias("benchmark"),
        n_prompts=alias("n_prompts"),
        n_samples=alias("n_samples"),
    )


def _fixed_unit(
    compute: str, path: Path | str, *, chosen: bool, given: str | None, has_column: bool
) -> str | None:
    """The unit of the whole column `compute`, or None when each row tells its own."""
    if given:
        return parse_unit(given, "--unit")
    name = _normal(compute)
    if name in UNIT_COLUMNS:
        return UNIT_COLUMNS[name]
    if name in ALIASES["step"]:
        return "steps"
    if has_column:
        return None
    if chosen:
        # A column named on purpose is a measure of its own: its name tells it from all others.
        return name
    raise InputError(
        f"{path}: the unit of '{compute}' is not known; add a compute_unit column or pass --unit "
        f"({', '.join(UNITS)})",
        "compute_unit",
    )


def parse_unit(text: str, where: str) -> str:
    """The unit's name in `UNITS`, from the spellings that people use."""
    name = _normal(text)
    found = name if name in UNITS else _UNIT_SPELLINGS.get(name)
    if found is None:
        raise InputError(
            f"{where}: unit '{text}' is not known; use one of {', '.join(UNITS)}", "compute_unit"
        )
    return found


def _add_row(
    runs: dict[str, CurveRows],
    row: dict[str, str],
    columns: Columns,
    where: str,
    default_run: str,
    bounds: tuple[float, float],
) -> None:
    run = ((row.get(columns.run) or "").strip() if columns.run else "") or default_run
    # A unit column, where there is one, is the most specific word on the matter.
    unit_cell = (row.get(columns.unit) or "").strip() if columns.unit else ""
    unit = parse_unit(unit_cell, where) if unit_cell else columns.fixed_unit
    if unit is None:
        raise InputError(f"{where}: compute_unit is empty; fill it in or pass --unit", "compute_unit")
    rows = runs.setdefault(run, CurveRows(run, unit))
    if rows.unit != unit:
        raise InputError(
            f"{where}: run '{run}' has compute in {rows.unit} and in {unit}; one curve has one unit, "
            "convert it or split the file",
            "compute_unit",
        )
    compute = _number(row.get(columns.compute), columns.compute, where)
    if compute < 0:
        raise InputError(f"{where}: {columns.compute} is {compute:g}; compute cannot be negative", "compute")
    rows.compute.append(compute)
    rows.pass_rate.append(_rate(row.get(columns.pass_rate), columns.pass_rate, where, bounds))
    if columns.step:
        rows.steps.append(_count(row.get(columns.step), columns.step, where) or 0)
    rows.n_prompts.append(_optional(row, columns.n_prompts, where))
    rows.n_samples.append(_optional(row, columns.n_samples, where))
    if columns.benchmark:
        _set_benchmark(rows, (row.get(columns.benchmark) or "").strip(), where)


def _set_benchmark(rows: CurveRows, benchmark: str, where: str) -> None:
    if benchmark and rows.benchmark not in (None, benchmark):
        raise InputError(
            f"{where}: run '{rows.run}' has scores of '{rows.benchmark}' and of '{benchmark}'; "
            "one curve has one benchmark, keep one or give them different run names",
            "benchmark",
        )
    rows.benchmark = benchmark or rows.benchmark


def _number(text: str | None, column: str, where: str) -> float:
    try:
        value = float((text or "").strip())
    except ValueError:
        raise InputError(
            f"{where}: {column} is {(text or '').strip()!r}, not a number; correct or remove the row", column
        ) from None
    if not math.isfinite(value):
        raise InputError(
            f"{where}: {column} is {text!r}, not a finite number; correct or remove the row", column
        )
    return value


def _bounds(percent: bool) -> tuple[float, float]:
    return (0.0, 100.0) if percent else (0.0, 1.0)


def _rate(text: str | None, column: str, where: str, bounds: tuple[float, float]) -> float:
    value = _number(text, column, where)
    low, high = bounds
    rate = (value - low) / (high - low)
    if 0.0 <= rate <= 1.0:
        return rate
    if bounds != (0.0, 1.0):
        raise InputError(f"{where}: {column} is {text}, outside {low:g} to {high:g}", "pass_rate")
    if 1.0 < value <= 100.0:
        raise InputError(
            f"{where}: {column} is {value:g}, outside 0 to 1; if it is in percent, pass --percent",
            "pass_rate",
        )
    raise InputError(f"{where}: {column} is {text}, outside 0 to 1; a pass rate is a fraction", "pass_rate")


def _count(text: str | None, column: str, where: str) -> int | None:
    if not (text or "").strip():
        return None
    value = _number(text, column, where)
    if value < 0 or value != int(value):
        raise InputError(f"{where}: {column} is {value:g}; it must be a whole number from 0", column)
    return int(value)


def _optional(row: dict[str, str], column: str | None, where: str) -> int | None:
    return _count(row.get(column), column, where) if column else None
