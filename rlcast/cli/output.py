"""What the commands print: tables for people on stdout, notes and errors on stderr."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fitting.units import unit_label

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]

console = Console(highlight=False, soft_wrap=True)
errors = Console(stderr=True, highlight=False, soft_wrap=True)

VERDICTS = {
    "identified": ("A is identified", "green"),
    "lower_bound_only": ("only a lower bound of A is known", "yellow"),
    "not_identified": ("A is not identified yet", "red"),
}


def print_error(message: str) -> None:
    """One line on stderr, in the same form for every error."""
    errors.print(
        Text("error: ", style="bold red")
        + Text(" ".join(message.split()) if "\n" not in message else message)
    )


def note(message: str) -> None:
    """A remark on stderr, so that it never mixes with results."""
    errors.print(Text(message, style="dim"))


def print_json(document: Any) -> None:
    """Strict JSON on stdout: NaN is refused."""
    print(json.dumps(document, indent=2, allow_nan=False, ensure_ascii=False))  # noqa: T201


def amount(value: float | None) -> str:
    """A compute value for people: 50,000 or 1.3e+18."""
    if value is None:
        return "never"
    if abs(value) >= 1e7 or (value and abs(value) < 1e-2):
        return f"{value:.3g}"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def rate(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def interval(low: float | None, high: float | None, form: Any = rate) -> str:
    return (
        f"{form(low) if low is not None else '–'} to {form(high) if high is not None else 'no upper bound'}"
    )


def _reach_interval(low: float | None, high: float | None) -> str:
    if low is None:
        return "not within reach: above A"
    return f"{amount(low)} to {amount(high) if high is not None else 'never'}"


def verdict_text(verdict: dict[str, Any]) -> Text:
    """The verdict in words, with its reasons and what would resolve it."""
    words, colour = VERDICTS[verdict["state"]]
    text = Text(words, style=f"bold {colour}")
    for reason in verdict["reasons"]:
        text.append(f"\n  · {reason}", style="none")
    if verdict.get("remedy"):
        text.append(f"\n  → {verdict['remedy']}", style="bold")
    return text


def print_forecast(forecast: dict[str, Any], out: Console = console) -> None:
    """Verdict in words first, numbers second."""
    unit = unit_label(forecast["unit"])
    window = forecast["window"]
    head = Text(forecast["run"], style="bold")
    head.append(
        f"  {forecast['law']}, {forecast['n_points']} points, "
        f"{amount(window['min_compute'])} to {amount(window['max_compute'])} {unit}",
        style="dim",
    )
    out.print(head)
    out.print(verdict_text(forecast["verdict"]))
    out.print(_numbers(forecast, unit))


def _numbers(forecast: dict[str, Any], unit: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("")
    table.add_column("value", justify="right")
    table.add_column(f"{forecast['level']:.0%} interval")
    for name, p in forecast["parameters"].items():
        form = amount if name == "Cmid" else rate if name in ("A", "R0") else (lambda v: f"{v:.2f}")
        label = f"{name} ({unit})" if name == "Cmid" else name
        table.add_row(label, form(p["value"]), interval(p["low"], p["high"], form))
    for at in forecast["at"]:
        table.add_row(
            f"at {amount(at['compute'])} {unit}", rate(at["value"]), interval(at["low"], at["high"])
        )
    for reach in forecast["reach"]:
        table.add_row(
            f"{unit} to reach {rate(reach['pass_rate'])}",
            amount(reach["compute"]),
            _reach_interval(reach["low"], reach["high"]),
        )
    return table
