"""`rlcast import`: curves from files into the service."""

from __future__ import annotations

from typing import Annotated

import typer

from fitting.units import unit_label
from rlcast.cli.output import amount, console, note
from rlcast.errors import InputError


def import_command(
    paths: Annotated[list[str], typer.Argument(metavar="FILE.csv", help="CSV or TSV files.")],
    recipe: Annotated[
        str | None, typer.Option("--recipe", help="Recipe of the runs (default: each run's name).")
    ] = None,
    benchmark: Annotated[
        str | None, typer.Option("--benchmark", help="What the pass rate was measured on.")
    ] = None,
    run: Annotated[list[str] | None, typer.Option("--run", help="Only this run (may be repeated).")] = None,
    x: Annotated[str | None, typer.Option("--x", help="Column with the compute.")] = None,
    y: Annotated[str | None, typer.Option("--y", help="Column with the pass rate.")] = None,
    unit: Annotated[
        str | None, typer.Option("--unit", help="Unit of compute when no column tells it.")
    ] = None,
    percent: Annotated[bool, typer.Option("--percent", help="Pass rates are in percent.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be imported, send nothing.")
    ] = False,
) -> None:
    """Import curves into the service. Importing the same file twice adds nothing."""
    from rlcast.client import Client
    from rlcast.imports import import_run
    from rlcast.tables import CurveRows, read_table

    found: list[CurveRows] = []
    for path in paths:
        table = read_table(path, x=x, y=y, unit=unit, percent=percent)
        for text in table.notes:
            note(f"{path}: {text}")
        found += [rows for name, rows in table.runs.items() if not run or name in run]
    if not found:
        raise InputError(f"--run {', '.join(run or [])}: no such run in the files", "--run")
    if dry_run:
        for rows in found:
            console.print(
                f"{rows.run}: {len(rows.compute)} evaluations, {amount(min(rows.compute))} to "
                f"{amount(max(rows.compute))} {unit_label(rows.unit)}",
                markup=False,
            )
        return
    with Client() as client:
        for rows in found:
            done = import_run(client, rows, recipe=recipe, benchmark=benchmark)
            console.print(
                f"{done.run}: {done.created} evaluations added, {done.duplicates} already there", markup=False
            )
