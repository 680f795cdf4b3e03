"""`rlcast gate`: the decision that CI acts on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from rlcast.cli.forecast import Law, Level, MaxCompute, MinCompute, Seed
from rlcast.cli.output import Json, console, interval, print_json, rate
from rlcast.errors import ExitCode, InputError

EXIT_CODES = {"pass": ExitCode.OK, "fail": ExitCode.GATE_FAILED, "inconclusive": ExitCode.INCONCLUSIVE}
_COLOURS = {"pass": "green", "fail": "red", "inconclusive": "yellow"}


def gate_command(
    candidate: Annotated[
        str, typer.Option("--candidate", help="Run or recipe of the service, or FILE.csv, or FILE.csv:RUN.")
    ],
    baseline: Annotated[str, typer.Option("--baseline", help="The same, or a number: the A to hold.")],
    margin: Annotated[float, typer.Option("--margin", help="How far below the baseline A may fall.")] = 0.02,
    confidence: Annotated[float, typer.Option("--confidence", help="Needed for a pass or a fail.")] = 0.95,
    law: Law = "sigmoid",
    min_compute: MinCompute = None,
    max_compute: MaxCompute = None,
    level: Level = 0.9,
    seed: Seed = 0,
    json_output: Json = False,
) -> None:
    """Reject a candidate whose predicted asymptote A falls below a baseline.

    Exit codes: 0 pass, 1 fail, 2 usage, 3 inconclusive, 4 service not reachable, 5 internal error.
    A candidate whose A is not identified never passes on its point estimate.
    """
    options = {
        "law": law,
        "min_compute": min_compute,
        "max_compute": max_compute,
        "level": level,
        "seed": seed,
    }
    if not 0 <= margin < 1:
        raise InputError(f"--margin is {margin:g}; give a pass-rate difference from 0 to 1", "--margin")
    if not 0.5 < confidence < 1:
        raise InputError(
            f"--confidence is {confidence:g}; give a probability above 0.5 and below 1", "--confidence"
        )
    if _is_file(candidate):
        decision = _decide_here(candidate, baseline, margin, confidence, options)
    elif _is_file(baseline):
        raise InputError(
            "--baseline is a file and --candidate is not; import the file first, or give two files",
            "--baseline",
        )
    else:
        decision = _ask_service(candidate, baseline, margin, confidence, options)
    if json_output:
        print_json(decision)
    else:
        print_decision(decision, candidate, baseline)
    raise typer.Exit(EXIT_CODES[decision["verdict"]])


def print_decision(decision: dict[str, Any], candidate: str, baseline: str) -> None:
    """The verdict in words, then its evidence."""
    verdict = decision["verdict"]
    console.print(f"[bold {_COLOURS[verdict]}]{verdict.upper()}[/]  ", end="")
    console.print(f"{candidate} against {baseline}", markup=False)
    for reason in decision["reasons"]:
        console.print(f"  · {reason}", markup=False)
    for role in ("candidate", "baseline"):
        side = decision[role]
        console.print(
            f"  A of the {role}: {rate(side['value'])} ({interval(side['low'], side['high'])})", markup=False
        )
    difference = decision["difference"]
    console.print(
        f"  difference {difference['value']:+.3f} "
        f"({difference['low']:+.3f} to {difference['high']:+.3f}), margin {decision['margin']:g}, "
        f"P(A below baseline − margin) = {decision['p_below']:.3f}",
        markup=False,
    )


def _is_file(text: str) -> bool:
    path, _ = split_run(text)
    return Path(path).is_file() or Path(path).suffix.lower() in {".csv", ".tsv"}


def split_run(text: str) -> tuple[str, str | None]:
    """`FILE.csv:RUN` into file and run; the run is None when it is not named."""
    for ending in (".csv:", ".tsv:"):
        if ending in text:
            path, run = text.split(ending, 1)
            return path + ending[:-1], run
    return text, None


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    if not 0 <= value <= 1:
        raise InputError(f"--baseline is {value:g}; an A is a pass rate from 0 to 1", "--baseline")
    return value


def _decide_here(
    candidate: str, baseline: str, margin: float, confidence: float, options: dict[str, Any]
) -> dict[str, Any]:
    from fitting import FitError, gate_decision

    number = _number(baseline)
    if number is None and not _is_file(baseline):
        raise InputError("--candidate is a file, so --baseline must be a file or a number", "--baseline")
    try:
        held = number if number is not None else _forecast_of(baseline, options)
        decision = gate_decision(_forecast_of(candidate, options), held, margin=margin, confidence=confidence)
    except FitError as error:
        raise InputError(str(error), error.field) from error
    return dict(decision.to_dict())


def _forecast_of(source: str, options: dict[str, Any]) -> Any:
    from fitting import forecast
    from rlcast.curves import curve_of, options_of
    from rlcast.importers import read_logs

    path, run = split_run(source)
    runs = {one.rows.run: one.rows for one in read_logs([path])}
    if run is None and len(runs) > 1:
        raise InputError(f"{path} holds {len(runs)} runs; name one as {path}:RUN ({', '.join(runs)})", "run")
    if run is not None and run not in runs:
        raise InputError(f"{path} has no run '{run}'; it has: {', '.join(runs)}", "run")
    return forecast(curve_of(runs[run or next(iter(runs))]), options_of(options))


def _ask_service(
    candidate: str, baseline: str, margin: float, confidence: float, options: dict[str, Any]
) -> dict[str, Any]:
    from rlcast.client import Client

    number = _number(baseline)
    with Client() as client:
        return client.gate(
            candidate=candidate,
            baseline=number if number is not None else baseline,
            margin=margin,
            confidence=confidence,
            **options,
        )
