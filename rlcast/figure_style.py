"""Colours, markers and text rules that every figure of ours shares."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

Theme = Literal["light", "dark"]

# Okabe and Ito's palette (jfly.uni-koeln.de/color): told apart with every common colour blindness.
# Yellow is left out on white, black on dark, for contrast.
_COLOURS: dict[Theme, tuple[str, ...]] = {
    "light": ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"),
    "dark": ("#56B4E9", "#E69F00", "#009E73", "#CC79A7", "#F0E442", "#D55E00", "#E8EAED"),
}
_MARKERS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star", "hexagon")
# Never "solid": that is kept for the part which points support.
_DASHES = ("dash", "dot", "dashdot", "longdash", "longdashdot")


@dataclass(frozen=True)
class Palette:
    """Colours of everything that is not a curve."""

    paper: str
    text: str
    muted: str
    grid: str
    baseline: str


PALETTES: dict[Theme, Palette] = {
    "light": Palette("#ffffff", "#1b1f24", "#57606a", "#e4e8ec", "#57606a"),
    "dark": Palette("#14181d", "#e8eaed", "#9aa4af", "#2b323a", "#b3bcc6"),
}


@dataclass(frozen=True)
class Style:
    """What tells one recipe from another: colour, marker and the dash of its extrapolation."""

    colour: str
    marker: str
    dash: str


def style_of(index: int, theme: Theme = "light", marker_offset: int = 0) -> Style:
    """The style of the `index`-th recipe. Colour and marker together repeat after 56 recipes only.

    `marker_offset` counts runs of the same recipe: they share all but the marker.
    """
    colours = _COLOURS[theme]
    return Style(
        colour=colours[index % len(colours)],
        marker=_MARKERS[(index + marker_offset) % len(_MARKERS)],
        dash=_DASHES[index % len(_DASHES)],
    )


def escape_text(text: object) -> str:
    """Makes a name plain text for plotly, which renders a subset of HTML in legends, titles and hover."""
    shown = "".join(c if c.isprintable() else " " for c in str(text))
    return shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def short_text(text: object, length: int = 36) -> str:
    """`text` with its middle cut out when it is longer than `length`: run names differ at their ends."""
    name = str(text)
    if len(name) <= length:
        return name
    tail = length // 2
    return f"{name[: length - tail - 1]}…{name[-tail:]}"


def exponent_format(unit: str) -> str:
    """How plotly writes large ticks: "50k" for hours, "2B" for tokens, "1e+18" for FLOPs.

    Not "power": its superscripts are styled inline, which a strict content policy forbids; and SI's "1E"
    for 10^18 is read as an exponent.
    """
    return {"flops": "e", "tokens": "B"}.get(unit, "SI")


def log_ticks(low: float, high: float, at_most: int = 6) -> dict[str, Any]:
    """Ticks for a small chart's logarithmic axis from `low` to `high`: 1, 2 and 5 of each decade, or fewer.

    Plotly's own labels run into each other where a chart is narrow.
    """
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for digits in ((1, 2, 5), (1, 3), (1,)):
        ticks = [d * 10.0**e for e in range(first, last + 1) for d in digits if low <= d * 10.0**e <= high]
        if len(ticks) <= at_most:
            break
    ticks = ticks[:: -(-len(ticks) // at_most)] if ticks else []
    return {"tickvals": ticks, "ticktext": [_tick_text(tick) for tick in ticks], "tickangle": 0}


def _tick_text(value: float) -> str:
    for scale, letter in ((1e6, "M"), (1e3, "k")):
        if scale <= value < 1000 * scale and value < 1e8:
            return f"{value / scale:g}{letter}"
    return number_text(value)


_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number_text(value: float) -> str:
    """Compute as people read it: 12,345 in full, very large and very small ones like 1.23×10¹⁹."""
    if value != 0 and not 1e-3 <= abs(value) < 1e7:
        mantissa, _, exponent = f"{value:.2e}".partition("e")
        return f"{float(mantissa):g}×10{str(int(exponent)).translate(_SUPERSCRIPTS)}"
    return f"{value:.4g}" if abs(value) < 1e3 else f"{value:,.0f}"


def template(theme: Theme) -> dict[str, Any]:
    """Layout defaults of a theme; small, so that a figure sent to a browser stays small."""
    palette = PALETTES[theme]
    axis = {
        "gridcolor": palette.grid,
        "linecolor": palette.muted,
        "tickcolor": palette.muted,
        "zeroline": False,
        "showline": True,
        "ticks": "outside",
        "title": {"standoff": 8},
        "automargin": True,
    }
    return {
        "paper_bgcolor": palette.paper,
        "plot_bgcolor": palette.paper,
        "font": {"color": palette.text, "family": "system-ui, sans-serif", "size": 13},
        "xaxis": axis,
        "yaxis": axis,
        "hoverlabel": {"align": "left"},
        "hovermode": "closest",
        "legend": {"orientation": "h", "x": 0, "xanchor": "left", "y": 1.02, "yanchor": "bottom"},
        "margin": {"l": 62, "r": 18, "t": 12, "b": 58},
        "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": palette.muted, "activecolor": palette.text},
    }


def rgba(colour: str, opacity: float) -> str:
    """`#rrggbb` with an opacity, as CSS writes it."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity})"
