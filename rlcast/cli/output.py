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
    for line in (*_laws(forecast), *_value(forecast, unit), *_details(forecast), *forecast.get("notes", ())):
        out.print(Text(line, style="dim"))


def _laws(forecast: dict[str, Any]) -> list[str]:
    laws = forecast.get("laws", [])
    if len(laws) < 2:
        return []
    shares = ", ".join(f"{law['title']} {law['weight']:.0%}" for law in laws if law["weight"] >= 0.01)
    return [f"laws by how they have forecast this run: {shares}"]


def _value(forecast: dict[str, Any], unit: str) -> list[str]:
    """What more compute gains."""
    value = forecast.get("value")
    if not value or value["next_tenth"]["gain"] is None:
        return []
    tenth, least = value["next_tenth"], value["diminishing_means"]["gain_below"]
    text = f"10% more compute gains {tenth['gain']:+.4f} ({tenth['low']:+.4f} to {tenth['high']:+.4f})"
    last, start = 1.001 * forecast["grid"]["observed_to"], value["diminishing_from"]["compute"]
    if start is not None:
        where = "already now" if start <= last else f"from about {amount(start)} {unit} on"
        text += f"; less than {least:g} {where}"
    return [text, *_pays(value["pays_until"], last, unit)]


def _pays(pays: dict[str, float | None] | None, last: float, unit: str) -> list[str]:
    """Up to where more compute pays at the asked price."""
    if pays is None:
        return []
    until = pays["compute"]
    if until is None:
        return ["at this price more compute pays as far as is forecast"]
    if until <= last:
        return ["at this price more compute no longer pays"]
    ends = interval(pays["low"], pays["high"], amount)
    return [f"at this price more compute pays until about {amount(until)} {unit} ({ends})"]


def _details(forecast: dict[str, Any]) -> list[str]:
    """lmfit's own account, and how the fit moves with the window's start."""
    fit = forecast.get("fit")
    if not fit:
        return []
    lines = [fit["note"]]
    for name, profile in fit["profile"].items():
        form = amount if name == "Cmid" else rate
        ends = interval(profile["low"], profile["high"], form) if profile else "no interval found"
        lines.append(f"  {name}: profile likelihood {ends}")
    strong = [f"{pair} {r:+.2f}" for pair, r in fit["correlations"].items() if r is not None and abs(r) > 0.8]
    lines.append(f"  strong correlations: {'; '.join(strong) or 'none'}")
    for cut in forecast["sensitivity"]:
        start = amount(cut["min_compute"])
        found = f"A {cut['A']:.3f}, B {cut['B']:.2f}, Cmid {amount(cut['Cmid'])}"
        lines.append(f"  from {start} ({cut['n_points']} points): {found}")
    return lines


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
