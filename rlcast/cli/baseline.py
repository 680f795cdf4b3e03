"""`rlcast baseline`: references for gates, pinned once and never changed."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from rlcast.cli.output import Json, console, print_json, rate
from rlcast.errors import InputError, ServiceError

app = typer.Typer(help="Pin and list references for gates.", no_args_is_help=True)


@app.command("set")
def set_command(
    name: Annotated[str, typer.Argument(help="Name of the baseline, for `rlcast gate --baseline`.")],
    value: Annotated[
        str, typer.Argument(metavar="NUMBER|RUN|RECIPE", help="An A, or whose forecast of today to pin.")
    ],
    reason: Annotated[str | None, typer.Option("--reason", help="Why this is the reference.")] = None,
    law: Annotated[
        str | None, typer.Option("--law", help="The law to fit (default: as for any forecast).")
    ] = None,
    min_compute: Annotated[
        float | None, typer.Option("--min-compute", help="Leave out points below this compute.")
    ] = None,
    max_compute: Annotated[
        float | None, typer.Option("--max-compute", help="Leave out points above this compute.")
    ] = None,
    json_output: Json = False,
) -> None:
    """Pin a number, or the forecast of a run or recipe as it is now. A baseline is never changed: pin another
    under a new name."""
    from rlcast.client import Client

    with Client() as client:
        options = {"law": law, "min_compute": min_compute, "max_compute": max_compute}
        number = _number(value)
        source = (
            {"pass_rate": number} if number is not None else {"forecast": _stored(client, value, options)}
        )
        pinned = client.pin_baseline(name=name, reason=reason, **source)
    if json_output:
        print_json(pinned)
    else:
        words = rate(number) if number is not None else f"the forecast of {value}"
        console.print(
            f"{pinned['name']} is {words}; use it with: rlcast gate --baseline {name}", markup=False
        )


def _number(value: str) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    if not 0 <= number <= 1:
        raise InputError(f"the baseline is {number:g}; an A is a pass rate from 0 to 1", "NUMBER")
    return number


def _stored(client: Any, name: str, options: dict[str, Any]) -> str:
    """Stores the forecast of the run of this name, else of the recipe; its id."""
    try:
        [forecast] = client.forecasts(runs=[name], save=True, **options)
    except ServiceError as error:
        if error.status != 404:
            raise
        [forecast] = client.forecasts(recipes=[name], save=True, **options)
    return str(forecast["id"])


@app.command("list")
def list_command(json_output: Json = False) -> None:
    """List baselines, newest first."""
    from rlcast.client import Client

    with Client() as client:
        items = list(client.baselines())
    if json_output:
        print_json({"baselines": items})
        return
    if not items:
        console.print("no baselines yet; pin one with: rlcast baseline set NAME 0.62")
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for column in ("name", "is", "pinned by", "at", "reason"):
        table.add_column(column)
    for item in items:
        what = (
            rate(item["pass_rate"]) if item["forecast_id"] is None else f"forecast {item['forecast_id'][:8]}"
        )
        cells = (item["name"], what, item["actor"], item["created_at"][:16], item["reason"] or "")
        table.add_row(*(escape(cell) for cell in cells))
    console.print(table)
