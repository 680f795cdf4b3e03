"""`rlcast compare`: two recipes or runs held against each other."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from rlcast.cli.forecast import Law, Level, MaxCompute, MinCompute, Seed, start_of
from rlcast.cli.output import Json, amount, console, interval, print_json, rate
from rlcast.errors import InputError
from rlcast.gates.decide import forecast_of, is_file


def compare_command(
    candidate: Annotated[
        str,
        typer.Argument(
            metavar="CANDIDATE", help="Run or recipe of the service, or FILE.csv, or FILE.csv:RUN."
        ),
    ],
    baseline: Annotated[str, typer.Argument(metavar="BASELINE", help="The same.")],
    margin: Annotated[
        float, typer.Option("--margin", help="Differences of A below this do not count.")
    ] = 0.02,
    reach: Annotated[
        float | None, typer.Option("--reach", help="Compare the compute to reach this pass rate.")
    ] = None,
    different_prompts: Annotated[
        bool, typer.Option("--different-prompts", help="The two were scored on different prompts.")
    ] = False,
    law: Law = "auto",
    min_compute: MinCompute = None,
    max_compute: MaxCompute = None,
    level: Level = 0.9,
    seed: Seed = 0,
    json_output: Json = False,
) -> None:
    """Say what a change does: does it move the ceiling, or how fast the ceiling is reached?

    Shows the difference of A with its interval and probability, B at a common A where the ceilings agree,
    the compute to reach a score, where the lead changes, and the winner by budget.

    Examples: rlcast compare new-recipe old-recipe

    rlcast compare runs.csv:with-fp32-head runs.csv:without
    """
    options = {
        "law": law,
        "min_compute": start_of(min_compute),
        "max_compute": max_compute,
        "level": level,
        "seed": seed,
    }
    asked = {"margin": margin, "reach": reach, "same_prompts": not different_prompts}
    files = [is_file(side) for side in (candidate, baseline)]
    if all(files):
        found = _here(candidate, baseline, options, asked)
    elif any(files):
        raise InputError(
            "one side is a file and the other is not; give two files, or import the file", "BASELINE"
        )
    else:
        from rlcast.client import Client

        with Client() as client:
            found = client.compare(candidate=candidate, baseline=baseline, **asked, **options)
    if json_output:
        print_json(found)
        return
    _print(found)


def _here(candidate: str, baseline: str, options: dict[str, Any], asked: dict[str, Any]) -> dict[str, Any]:
    from fitting import FitError, compare

    try:
        return compare(forecast_of(candidate, options), forecast_of(baseline, options), **asked).to_dict()
    except FitError as error:
        raise InputError(str(error), error.field) from error


def _print(found: dict[str, Any]) -> None:
    label = found["label"]
    names = f"{found['candidate']['name']} against {found['baseline']['name']}"
    console.print(f"[bold]{label['name'] or 'not decided yet'}[/]  ", end="")
    console.print(names, markup=False)
    for line in (*label["evidence"], *_lines(found)):
        console.print(f"  · {line}", markup=False)


def _lines(found: dict[str, Any]) -> list[str]:
    lines = []
    if difference := found["difference"]:
        ends = f"{difference['low']:+.3f} to {difference['high']:+.3f}"
        lines.append(
            f"difference of A {difference['value']:+.3f} ({ends}), higher with P = {difference['p_higher']:.2f}"
        )
    reach, unit = found["reach"], found["unit"]
    ours, theirs = amount(reach["candidate"]), amount(reach["baseline"])
    text = f"to reach {rate(reach['pass_rate'])}: {ours} against {theirs} {unit}"
    if reach["ratio"]:
        ratio = reach["ratio"]
        ends = interval(ratio["low"], ratio["high"], lambda v: f"{v:.2f}")
        text += f", {ratio['value']:.2f} times as much ({ends})"
    lines.append(text)
    if crossing := found["crossing"]:
        where = interval(crossing["low"], crossing["high"], amount)
        lines.append(
            f"the {crossing['leads_after']} leads beyond {amount(crossing['compute'])} {unit} ({where})"
        )
    for row in found["winners"][:: max(len(found["winners"]) // 4, 1)]:
        who = row["winner"] or "undecided"
        lines.append(
            f"at {amount(row['compute'])} {unit}: {rate(row['candidate'])} against {rate(row['baseline'])}, "
            f"{who} (P = {row['p_candidate']:.2f})"
        )
    return lines
