"""Writes a report in the form asked for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal, get_args

from rlcast.errors import InputError
from rlcast.gates.chart import chart_svg
from rlcast.gates.junit import to_junit
from rlcast.gates.markdown import to_markdown
from rlcast.gates.report import GateReport
from rlcast.gates.sarif import to_sarif
from rlcast.gates.text import to_text

Format = Literal["text", "json", "markdown", "junit", "sarif"]
FORMATS: tuple[str, ...] = get_args(Format)


def rendered(report: GateReport, form: str, chart: str | None = None) -> str:
    """The report in one of `FORMATS`. `chart` is for Markdown: the address of an image, or "inline"."""
    if form == "json":
        return json.dumps(report.to_dict(), indent=2, allow_nan=False, ensure_ascii=False) + "\n"
    if form == "markdown":
        return to_markdown(report, chart)
    if form == "junit":
        return to_junit(report, to_text(report))
    return to_sarif(report) if form == "sarif" else to_text(report)


def parse_also(text: str) -> tuple[str, Path]:
    """`FORMAT=FILE` into both. Raises `InputError`."""
    form, _, path = text.partition("=")
    if form not in FORMATS or not path:
        raise InputError(
            f"--also is '{text}'; write it as FORMAT=FILE with one of {', '.join(FORMATS)}", "--also"
        )
    return form, Path(path)


def write_file(path: Path, content: str, option: str) -> None:
    """Raises `InputError` that names the option."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{option} {path} cannot be written ({error.strerror})", option) from None


def write_chart(report: GateReport, path: Path) -> bool:
    """The chart as an SVG file; False when there is none to draw."""
    svg = chart_svg(report)
    if svg is not None:
        write_file(path, svg, "--chart")
    return svg is not None
