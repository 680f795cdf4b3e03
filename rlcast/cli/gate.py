"""`rlcast gate`: the decision that CI acts on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from rlcast.cli.forecast import start_of
from rlcast.cli.output import Json, console
from rlcast.errors import ExitCode, InputError, RlcastError
from rlcast.gates.decide import decide, is_file, split_run
from rlcast.gates.policy import CONFIG_NAME, Policy, resolve
from rlcast.gates.report import GateReport, report_of
from rlcast.gates.text import to_text
from rlcast.gates.write import FORMATS, parse_also, rendered, write_chart, write_file

_COLOURS = {"pass": "green", "fail": "red", "inconclusive": "yellow", "error": "red"}


def gate_command(
    candidate: Annotated[
        str | None,
        typer.Option("--candidate", help="Run or recipe of the service, or FILE.csv, or FILE.csv:RUN."),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option("--baseline", help="The same, or a pinned baseline, or a number: the A to hold."),
    ] = None,
    margin: Annotated[
        float | None, typer.Option("--margin", help="How far below the baseline A may fall (0.02).")
    ] = None,
    confidence: Annotated[
        float | None, typer.Option("--confidence", help="Needed for a pass or a fail (0.95).")
    ] = None,
    on_inconclusive: Annotated[
        str | None,
        typer.Option("--on-inconclusive", help="fail (exit 3, the default), pass or neutral (both exit 0)."),
    ] = None,
    law: Annotated[str | None, typer.Option("--law", help="auto (the default), or the law to fit.")] = None,
    min_compute: Annotated[
        str | None, typer.Option("--min-compute", help="Leave out points below this compute, or auto.")
    ] = None,
    max_compute: Annotated[
        float | None, typer.Option("--max-compute", help="Leave out points above this compute.")
    ] = None,
    level: Annotated[float | None, typer.Option("--level", help="Coverage of the intervals (0.9).")] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Seed of the bootstrap (0).")] = None,
    config: Annotated[
        Path | None, typer.Option("--config", help=f"Policy file (default: {CONFIG_NAME}, if it is here).")
    ] = None,
    form: Annotated[
        str | None,
        typer.Option("--format", help="text, json, markdown, junit or sarif.", show_default="text"),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", help="Write the report into this file instead of printing it.")
    ] = None,
    also: Annotated[
        list[str] | None,
        typer.Option("--also", metavar="FORMAT=FILE", help="Write it in this form too (repeatable)."),
    ] = None,
    chart: Annotated[
        str | None,
        typer.Option("--chart", metavar="FILE.svg|inline", help="Draw a chart, and show it in Markdown."),
    ] = None,
    json_output: Json = False,
) -> None:
    """Reject a candidate whose predicted asymptote A falls below a baseline.

    Exit codes: 0 pass, 1 fail, 2 usage, 3 inconclusive, 4 service not reachable, 5 internal error.
    A candidate whose A is not identified never passes on its point estimate. The policy may stand in
    `[gate]` of a checked-in rlcast.toml, under the names of these options; options win.
    """
    form = _format(form, json_output)
    reports = [parse_also(text) for text in also or []]
    if output is not None:
        reports.append((form, output))
    flags = {
        "candidate": candidate,
        "baseline": baseline,
        "margin": margin,
        "confidence": confidence,
        "on_inconclusive": on_inconclusive,
        "law": law,
        "min_compute": start_of(min_compute),
        "max_compute": max_compute,
        "level": level,
        "seed": seed,
    }
    try:
        policy = resolve(flags, config)
        report = _report(policy)
    except Exception as error:  # CI shows the files, so they must not be missing or of an earlier run
        _write(_error_report(flags, error), reports, None)
        raise
    shown = _draw(report, chart)
    _write(report, reports, shown)
    if output is None:
        _print(report, form, shown)
    raise typer.Exit(report.exit_code)


def _format(form: str | None, json_output: bool) -> str:
    if json_output and form not in (None, "json"):
        raise InputError(f"--json and --format {form} differ; give one", "--format")
    form = form or ("json" if json_output else "text")
    if form not in FORMATS:
        raise InputError(f"--format is '{form}'; use one of {', '.join(FORMATS)}", "--format")
    return form


def _report(policy: Policy) -> GateReport:
    return report_of(
        decide(policy),
        policy.candidate,
        _baseline_text(policy.baseline),
        policy.on_inconclusive,
        location=_location(policy),
    )


def _baseline_text(baseline: str | float | None) -> str:
    return f"{baseline:g}" if isinstance(baseline, float) else str(baseline)


def _location(policy: Policy) -> str | None:
    """The file of the repository that the decision is about: the policy's, else the candidate's curve."""
    path = policy.config
    if path is None and is_file(policy.candidate):
        path = Path(split_run(policy.candidate)[0])
    return path.as_posix() if path is not None and not path.is_absolute() else None


def _error_report(flags: dict[str, Any], error: Exception) -> GateReport:
    code = error.exit_code if isinstance(error, RlcastError) else ExitCode.INTERNAL
    names = [str(flags[key]) if flags[key] else "–" for key in ("candidate", "baseline")]
    return GateReport("error", names[0], names[1], code, error=" ".join(str(error).split()))


def _draw(report: GateReport, chart: str | None) -> str | None:
    """Writes the chart's file; what Markdown shows of it."""
    if chart is None or chart == "inline":
        return chart
    return Path(chart).as_posix() if write_chart(report, Path(chart)) else None


def _write(report: GateReport, reports: Sequence[tuple[str, Path]], chart: str | None) -> None:
    for form, path in reports:
        write_file(path, rendered(report, form, chart), "--output or --also")


def _print(report: GateReport, form: str, chart: str | None) -> None:
    if form != "text":
        print(rendered(report, form, chart), end="")  # noqa: T201
        return
    verdict, rest = to_text(report).split(maxsplit=1)
    console.print(f"[bold {_COLOURS[report.verdict]}]{verdict}[/]  {escape(rest)}", end="")


def print_decision(decision: dict[str, Any], candidate: str, baseline: str) -> None:
    """The verdict in words, then its evidence."""
    _print(report_of(decision, candidate, baseline), "text", None)
