"""`rlcast import`: curves and training logs from files into the service."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from fitting.units import unit_label
from rlcast.cli.output import amount, console, note, rate
from rlcast.errors import InputError

if TYPE_CHECKING:
    from rlcast.importers import Imported, Options
    from rlcast.tables import CurveRows

#: Options that `rlcast forecast` takes as well.
Format = Annotated[
    str, typer.Option("--format", help="What the files are: auto, or a name from docs/importing.md.")
]
Devices = Annotated[
    int | None, typer.Option("--devices", min=1, help="Devices of the run: turns times into GPU-hours.")
]
Range = Annotated[
    str | None,
    typer.Option("--range", metavar="LOW:HIGH", help="Bounds of the score, when it is not 0 to 1."),
]


def import_command(
    paths: Annotated[
        list[str],
        typer.Argument(metavar="PATH", help="Tables, logs of trainers and trackers, their folders."),
    ],
    format_name: Format = "auto",
    recipe: Annotated[
        str | None, typer.Option("--recipe", help="Recipe of the runs (default: each run's name).")
    ] = None,
    benchmark: Annotated[
        str | None, typer.Option("--benchmark", help="What the pass rate was measured on.")
    ] = None,
    run: Annotated[list[str] | None, typer.Option("--run", help="Only this run (may be repeated).")] = None,
    name: Annotated[
        str | None, typer.Option("--name", help="The run's name; several files are its attempts, in order.")
    ] = None,
    x: Annotated[str | None, typer.Option("--x", help="Column or key with the compute.")] = None,
    y: Annotated[str | None, typer.Option("--y", help="Column or key with the pass rate.")] = None,
    unit: Annotated[
        str | None, typer.Option("--unit", help="Unit of compute when no column tells it, or one of several.")
    ] = None,
    devices: Devices = None,
    score_range: Range = None,
    percent: Annotated[bool, typer.Option("--percent", help="Pass rates are in percent.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what was understood, send nothing.")
    ] = False,
) -> None:
    """Import curves and training logs into the service. Importing the same file twice adds nothing.

    Example: rlcast import verl.log --devices 8 --dry-run
    """
    from rlcast.client import Client
    from rlcast.importers import read_logs
    from rlcast.imports import import_run

    options = log_options(
        x=x, y=y, unit=unit, devices=devices, score_range=score_range, percent=percent, name=name
    )
    read = read_logs(paths, format_name, options)
    found = [one for one in read if not run or one.rows.run in run]
    if not found:
        raise InputError(f"--run {', '.join(run or [])}: no such run in the files", "--run")
    if dry_run:
        for one in found:
            preview(one, benchmark)
        return
    print_notes(found)
    with Client() as client:
        for one in found:
            done = import_run(client, one.rows, recipe=recipe, benchmark=benchmark)
            console.print(
                f"{done.run}: {done.created} evaluations added, {done.duplicates} already there"
                + (f", {done.superseded} replaced by a later attempt" if done.superseded else ""),
                markup=False,
            )


def log_options(*, score_range: str | None, percent: bool, **fields: Any) -> Options:
    """The reader's options as given on the command line."""
    from rlcast.importers import Options
    from rlcast.tables import parse_unit

    if score_range and percent:
        raise InputError("--percent and --range both say the bounds of the score; give one", "--range")
    low, high = _bounds(score_range) if score_range else (0.0, 100.0 if percent else 1.0)
    if fields["unit"]:
        fields["unit"] = parse_unit(fields["unit"], "--unit")
    return Options(low=low, high=high, **fields)


def _bounds(text: str) -> tuple[float, float]:
    low, _, high = text.partition(":")
    try:
        bounds = float(low), float(high)
    except ValueError:
        bounds = (0.0, 0.0)
    if not -1e300 < bounds[0] < bounds[1] < 1e300:
        raise InputError(f"--range is '{text}'; give two numbers as LOW:HIGH, for example -1:1", "--range")
    return bounds


def print_notes(found: list[Imported]) -> None:
    """What was understood and left out, on stderr, once a log."""
    said: set[str] = set()
    for one in found:
        facts = [f"{label}: {text}" for label, text in one.report.facts if label in ("score", "compute")]
        for text in (*facts, *one.report.notes):
            line = f"{one.source}: {text}"
            if line not in said:
                note(line)
            said.add(line)


def preview(one: Imported, benchmark: str | None) -> None:
    """One run as a small table: what was understood, and its first and last points."""
    rows = one.rows
    n = len(rows.compute)
    console.print(
        f"{rows.run}: {n} evaluation{'' if n == 1 else 's'}, {amount(min(rows.compute))} to "
        f"{amount(max(rows.compute))} {unit_label(rows.unit)}",
        markup=False,
    )
    facts = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 2))
    for label, text in (
        ("format", one.report.format),
        ("benchmark", benchmark or rows.benchmark or "not named (pass --benchmark)"),
        *one.report.facts,
        *(("note", text) for text in one.report.notes),
    ):
        facts.add_row(label, text)
    console.print(facts, markup=False)
    console.print(_points(rows), markup=False)


def _points(rows: CurveRows, shown: int = 3) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 2), header_style="dim")
    units = [rows.unit, *(unit for unit in rows.also if unit != "steps")]
    for head in ("step", *(unit_label(unit) for unit in units), "pass rate"):
        table.add_column(head, justify="right")
    n = len(rows.compute)
    for i in range(n):
        if shown <= i < n - shown:
            if i == shown:
                table.add_row(*["…"] * (len(units) + 2))
            continue
        step = str(rows.steps[i]) if rows.steps else ""
        spent = [amount(rows.compute[i]), *(amount(rows.also[unit][i]) for unit in units[1:])]
        table.add_row(step, *spent, rate(rows.pass_rate[i]))
    return table
