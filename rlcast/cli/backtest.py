"""`rlcast backtest`: how good forecasts of these curves would have been."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from rlcast.cli.imports import print_notes
from rlcast.cli.output import Json, console, note, print_json
from rlcast.errors import InputError


def backtest_command(
    files: Annotated[list[Path], typer.Argument(metavar="FILE…", help="Tables or logs of finished runs.")],
    seen: Annotated[
        list[float] | None, typer.Option("--seen", help="Fraction of evaluations seen (repeatable).")
    ] = None,
    law: Annotated[
        list[str] | None, typer.Option("--law", help="Only these laws (repeatable); default: auto and all.")
    ] = None,
    level: Annotated[float, typer.Option("--level", help="Coverage of the intervals.")] = 0.9,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the replicates.")] = 0,
    figure: Annotated[
        Path | None, typer.Option("--figure", help="Also write a figure to this HTML file.")
    ] = None,
    json_output: Json = False,
) -> None:
    """Cut finished runs short, forecast their ends, and score the forecasts.

    For every run and fraction, each law forecasts the mean of the last tenth of the evaluations from what had
    been seen. The table shows the mean absolute error and bias, how often the interval held what happened, its
    width, the interval score and the CRPS (both in pass rate, lower is better).

    Example: rlcast backtest runs.csv --seen 0.25 --seen 0.5 --figure backtest.html
    """
    from fitting import FitError, ForecastOptions, backtest
    from fitting.backtest import FRACTIONS, METHODS
    from rlcast.curves import curve_of
    from rlcast.importers import read_logs

    imported = read_logs(files)
    print_notes(imported)
    curves = [curve_of(one.rows, one.rows.run) for one in imported]
    try:
        options = ForecastOptions(level=level, seed=seed)
        for name in law or ():
            ForecastOptions(law=name)
        result = backtest(
            curves,
            seen or FRACTIONS,
            law or METHODS,
            options,
            progress=lambda name: note(f"testing on {name} …"),
        ).to_dict()
    except FitError as error:
        raise InputError(str(error), error.field) from error
    if figure is not None:
        if not result["scores"]:
            raise InputError("no forecast could be scored, so there is no figure to draw", "--figure")
        from rlcast.figure_backtest import backtest_figure

        backtest_figure(result).write_html(figure, include_plotlyjs=True)
        note(f"figure written to {figure}")
    if json_output:
        print_json(result)
        return
    _print(result)


def _print(result: dict[str, Any]) -> None:
    for fraction in dict.fromkeys(row["seen"] for row in result["summary"]):
        rows = [row for row in result["summary"] if row["seen"] == fraction]
        console.print(f"[bold]{fraction:.0%} of the evaluations seen[/], {rows[0]['n']} runs")
        console.print(_table(rows))
    for row in result["skipped"]:
        console.print(f"skipped: {row['run']} at {row['seen']:.0%}: {row['reason']}", markup=False)


def _table(rows: list[dict[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("")
    for title in (
        "abs. error",
        "bias",
        f"in {rows[0]['level']:.0%}",
        "width",
        "int. score",
        "CRPS",
    ):
        table.add_column(title, justify="right")
    best = min(row["mean_absolute_error"] for row in rows)
    for row in rows:
        error = f"{row['mean_absolute_error']:.4f}"
        table.add_row(
            row["method"],
            f"[bold]{error}[/]" if row["mean_absolute_error"] == best else error,
            f"{row['bias']:+.4f}",
            f"{row['coverage']:.0%}",
            f"{row['width']:.3f}",
            f"{row['interval_score']:.3f}",
            f"{row['crps']:.4f}",
        )
    return table
