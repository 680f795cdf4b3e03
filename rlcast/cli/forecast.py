"""`rlcast forecast`: from a file (no server) or from runs of the service."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rlcast.cli.imports import Devices, Format, Range, log_options, print_notes
from rlcast.cli.output import Json, console, print_forecast, print_json
from rlcast.errors import InputError

if TYPE_CHECKING:
    from rlcast.importers import Imported
    from rlcast.tables import CurveRows

#: Endings that make an argument a file even when it is not there (so that a typo is not sought as a run).
_FILE_ENDINGS = {".csv", ".tsv", ".txt", ".log", ".json", ".jsonl", ".ipynb", ".parquet", ".wandb", ".gz"}

Law = Annotated[
    str,
    typer.Option(
        "--law",
        help="auto (laws combined by how they have forecast this run so far), sigmoid, saturating-power, power, "
        "log-linear, exponential, last-value, or scalerl-paper (the published procedure).",
    ),
]
MinCompute = Annotated[
    str | None,
    typer.Option("--min-compute", help="Leave out points below this compute; auto: chosen by stability."),
]
MaxCompute = Annotated[
    float | None, typer.Option("--max-compute", help="Leave out points above this compute (what was seen).")
]
Level = Annotated[float, typer.Option("--level", help="Coverage of the intervals, between 0 and 1.")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of the bootstrap: same seed, same answer.")]


def forecast_command(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE.csv|RUN", help="Tables or training logs, or names of runs in the service."
        ),
    ],
    run: Annotated[
        list[str] | None, typer.Option("--run", help="Only this run of the file (may be repeated).")
    ] = None,
    law: Law = "auto",
    min_compute: MinCompute = None,
    max_compute: MaxCompute = None,
    at: Annotated[
        list[float] | None, typer.Option("--at", help="Forecast the score at this compute (repeatable).")
    ] = None,
    reach: Annotated[
        list[float] | None, typer.Option("--reach", help="Compute to reach this pass rate (repeatable).")
    ] = None,
    level: Level = 0.9,
    seed: Seed = 0,
    loss: Annotated[
        str, typer.Option("--loss", help="Of the point fit: linear, or robust soft_l1, huber, cauchy.")
    ] = "linear",
    bands: Annotated[
        str, typer.Option("--bands", help="posterior, or bootstrap (of one law; narrower than it should be).")
    ] = "posterior",
    price: Annotated[float | None, typer.Option("--price", help="What a unit of compute costs.")] = None,
    worth: Annotated[
        float | None, typer.Option("--worth", help="What 0.01 of pass rate is worth, in the same money.")
    ] = None,
    details: Annotated[
        bool, typer.Option("--details", help="Also lmfit's correlations and profile intervals.")
    ] = False,
    x: Annotated[str | None, typer.Option("--x", help="Column with the compute.")] = None,
    y: Annotated[str | None, typer.Option("--y", help="Column with the pass rate.")] = None,
    unit: Annotated[
        str | None, typer.Option("--unit", help="Unit of compute when no column tells it.")
    ] = None,
    percent: Annotated[bool, typer.Option("--percent", help="Pass rates are in percent.")] = False,
    format_name: Format = "auto",
    devices: Devices = None,
    score_range: Range = None,
    json_output: Json = False,
) -> None:
    """Forecast pass rates at more compute than was spent.

    Works on a file without any server. Columns: run, compute, compute_unit, pass_rate (common other names
    are understood; name any other with --x and --y). Logs of trainers are read as `rlcast import` reads them.

    Example: rlcast forecast curve.csv --max-compute 50000 --at 100000 --reach 0.63
    """
    options = {
        "law": law,
        "min_compute": start_of(min_compute),
        "max_compute": max_compute,
        "level": level,
        "seed": seed,
        "loss": loss,
        "bands": bands,
        "price": price,
        "worth": worth,
        "details": details,
        "at": tuple(at or ()),
        "reach": tuple(reach or ()),
    }
    from rlcast.importers import read_logs

    files = [s for s in sources if Path(s).is_file() or Path(s).suffix.lower() in _FILE_ENDINGS or "/" in s]
    names = [s for s in sources if s not in files]
    if files and names:
        raise InputError(
            f"'{names[0]}' is not a file; give files or runs of the service, not both at once", "FILE.csv|RUN"
        )
    if files:
        read = log_options(x=x, y=y, unit=unit, devices=devices, score_range=score_range, percent=percent)
        imported = read_logs(files, format_name, read)
        print_notes(imported)
        forecasts = _from_files(_by_name(imported), run, options)
    else:
        forecasts = _from_service(names, {**options, "at": list(at or ()), "reach": list(reach or ())})
    if json_output:
        print_json({"forecasts": forecasts})
        return
    for index, forecast in enumerate(forecasts):
        if index:
            console.print()
        print_forecast(forecast)


def start_of(text: str | None) -> float | str | None:
    """`--min-compute` as a number, "auto" or None."""
    if text is None or text == "auto":
        return text
    try:
        return float(text)
    except ValueError:
        raise InputError(f"--min-compute is '{text}'; give a compute or auto", "--min-compute") from None


def _by_name(imported: list[Imported]) -> dict[str, CurveRows]:
    rows: dict[str, CurveRows] = {}
    for one in imported:
        name = one.rows.run
        rows[name if name not in rows else f"{Path(one.source).stem}/{name}"] = one.rows
    return rows


def _from_files(
    rows: dict[str, CurveRows], only: list[str] | None, options: dict[str, Any]
) -> list[dict[str, Any]]:
    from rlcast.curves import curve_of, forecast_curve, options_of

    fit_options = options_of(options)
    chosen = _chosen(rows, only)
    units = sorted({curve.unit for curve in chosen.values()})
    if len(units) > 1:
        raise InputError(
            f"the runs have compute in {' and '.join(units)}; forecast one unit at a time "
            "(choose runs with --run)",
            "compute_unit",
        )
    return [forecast_curve(curve_of(curve, name), fit_options) for name, curve in chosen.items()]


def _chosen(rows: dict[str, Any], only: list[str] | None) -> dict[str, Any]:
    for name in only or ():
        if name not in rows:
            known = ", ".join(list(rows)[:8]) + (", …" if len(rows) > 8 else "")
            raise InputError(f"--run '{name}' is not in the file; it has: {known}", "--run")
    return {name: rows[name] for name in only} if only else rows


def _from_service(names: list[str], options: dict[str, Any]) -> list[dict[str, Any]]:
    from rlcast.client import Client

    with Client() as client:
        return client.forecasts(runs=names, **options)
