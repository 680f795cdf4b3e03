"""Renders templates; every value in them is escaped."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

from fitting.units import unit_label
from rlcast import __version__
from rlcast.figure_style import number_text
from web.assets import PLOTLY_PATH, map_style_ids

_environment = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=select_autoescape(default=True, default_for_string=True),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def rate_text(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def decimal_text(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def compute_text(value: float | None) -> str:
    return "–" if value is None else number_text(value)


def plain_text(value: float | None) -> str:
    """A number as an input field holds it."""
    return "" if value is None else f"{value:.6g}"


def moment_text(value: datetime | str | None) -> str:
    """A moment in UTC: readers of one page may sit in different zones."""
    if value is None:
        return "–"
    moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


_environment.filters.update(
    rate=rate_text,
    decimal=decimal_text,
    compute=compute_text,
    unit=unit_label,
    plain=plain_text,
    moment=moment_text,
)
_environment.globals.update(version=__version__, plotly_path=PLOTLY_PATH, map_style_ids=map_style_ids)


def fragment(name: str, **values: object) -> str:
    """Part of a page, as HTML that a module of ours puts in its place."""
    return _environment.get_template(name).render(**values)


def page(request: Request, name: str, status_code: int = 200, **values: object) -> HTMLResponse:
    html = _environment.get_template(name).render(path=request.url.path, **values)
    return HTMLResponse(html, status_code)
