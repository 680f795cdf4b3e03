"""What the Compare page shows, as its address says it: the address is the whole state."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import urlencode

from starlette.datastructures import QueryParams

from fitting import METHODS
from rlcast.figure_style import Theme

#: "line" is the straightened law, see `rlcast.figure_line`.
VIEWS = ("curve", "line")
LEVELS = (0.5, 0.8, 0.9, 0.95)
#: More curves than this on one chart cannot be told apart, and would hold the forecasters for long.
MAX_CURVES = 50

_SUFFIXES = {"k": 1e3, "m": 1e6, "g": 1e9, "b": 1e9, "t": 1e12}


@dataclass(frozen=True)
class CompareState:
    """`min_compute`, `max_compute` and `at` are in `unit`; None leaves the choice to the data. `reach` is
    a pass rate whose compute is asked for, `view` the way the chart is drawn.

    `chosen` says that the reader chose the curves, even if none; without it the newest runs are shown.
    """

    runs: tuple[str, ...] = ()
    recipes: tuple[str, ...] = ()
    benchmark: str | None = None
    unit: str | None = None
    law: str = "auto"
    level: float = 0.9
    min_compute: float | None = None
    max_compute: float | None = None
    at: float | None = None
    reach: float | None = None
    baseline: str | None = None
    margin: float = 0.02
    view: str = "curve"
    chosen: bool = False
    errors: Mapping[str, str] = field(default_factory=dict)

    @property
    def n_curves(self) -> int:
        return len(self.runs) + len(self.recipes)

    def query(self) -> str:
        """The shortest address of this state: what is at its default is left out."""
        plain = CompareState()
        pairs = [("run", name) for name in self.runs] + [("recipe", name) for name in self.recipes]
        if self.chosen and not pairs:
            pairs = [("run", "")]
        for key, name in _FIELDS.items():
            value = getattr(self, name)
            if value is not None and value != getattr(plain, name):
                pairs.append((key, f"{value:g}" if isinstance(value, float) else str(value)))
        return urlencode(pairs)


_FIELDS = {
    "benchmark": "benchmark",
    "unit": "unit",
    "law": "law",
    "level": "level",
    "min": "min_compute",
    "max": "max_compute",
    "at": "at",
    "reach": "reach",
    "baseline": "baseline",
    "margin": "margin",
    "view": "view",
}


def parse_compute(text: str) -> float:
    """A positive amount as people type it: 50000, 50,000, 5e4, 50k, 1.2M.

    Raises `ValueError` with a message for the reader.
    """
    plain = text.strip().replace(",", "").replace("_", "").replace(" ", "")
    scale = _SUFFIXES.get(plain[-1:].lower(), 1.0)
    try:
        value = float(plain[:-1] if scale != 1.0 else plain) * scale
    except ValueError:
        raise ValueError(f"{text.strip()!r} is not a number; write it like 50000, 5e4 or 50k") from None
    if not (math.isfinite(value) and value > 0):
        raise ValueError("compute must be above 0; write it like 50000, 5e4 or 50k")
    return value


def parse_state(query: QueryParams) -> CompareState:
    """Reads the address. What cannot be read is left at its default, with a message in `errors`."""
    reader = _Reader(query)
    state = CompareState(
        runs=reader.names("run"),
        recipes=reader.names("recipe"),
        benchmark=reader.text("benchmark"),
        unit=reader.text("unit"),
        law=reader.choice("law", list(METHODS), "auto"),
        level=reader.level(),
        min_compute=reader.compute("min"),
        max_compute=reader.compute("max"),
        at=reader.compute("at"),
        reach=reader.rate("reach"),
        baseline=reader.text("baseline"),
        margin=reader.margin(),
        view=reader.choice("view", VIEWS, "curve"),
        chosen="run" in query or "recipe" in query,
    )
    if state.n_curves > MAX_CURVES:
        reader.errors["run"] = f"{state.n_curves} curves chosen; the first {MAX_CURVES} are shown"
        runs = state.runs[:MAX_CURVES]
        state = replace(state, runs=runs, recipes=state.recipes[: MAX_CURVES - len(runs)])
    if state.min_compute and state.max_compute and state.min_compute >= state.max_compute:
        reader.errors["max"] = "the window's end must be above its start"
        state = replace(state, min_compute=None, max_compute=None)
    return replace(state, errors=reader.errors)


class _Reader:
    def __init__(self, query: QueryParams) -> None:
        self.query = query
        self.errors: dict[str, str] = {}

    def names(self, key: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(n for n in self.query.getlist(key) if n and "\0" not in n))

    def text(self, key: str) -> str | None:
        value = self.query.get(key, "").strip()
        return value if value and "\0" not in value else None

    def compute(self, key: str) -> float | None:
        text = self.text(key)
        if text is None:
            return None
        try:
            return parse_compute(text)
        except ValueError as error:
            self.errors[key] = str(error)
            return None

    def choice(self, key: str, allowed: Sequence[str], default: str) -> str:
        text = self.text(key)
        if text is None or text in allowed:
            return text or default
        self.errors[key] = f"{text!r} is not known; choose one of {', '.join(allowed)}"
        return default

    def level(self) -> float:
        text = self.choice("level", [f"{level:g}" for level in LEVELS], "0.9")
        return float(text)

    def rate(self, key: str) -> float | None:
        text = self.text(key)
        if text is None:
            return None
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not 0 < value < 1:
            self.errors[key] = "a pass rate is above 0 and below 1, like 0.65"
            return None
        return value

    def margin(self) -> float:
        text = self.text("margin")
        if text is None:
            return 0.02
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not 0 <= value < 1:
            self.errors["margin"] = "the margin is a difference of pass rates from 0 to below 1, like 0.02"
            return 0.02
        return value


def parse_theme(query: QueryParams) -> Theme:
    return "dark" if query.get("theme") == "dark" else "light"
