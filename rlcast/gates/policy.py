"""What a gate asks for: `[gate]` of a checked-in `rlcast.toml`, overruled by the command line."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, get_args

from rlcast.errors import InputError

CONFIG_NAME = "rlcast.toml"

OnInconclusive = Literal["fail", "pass", "neutral"]


@dataclass(frozen=True)
class Policy:
    """A complete gate. `config` is the file that took part, `named` how to call each key in an error."""

    candidate: str
    baseline: str | float
    margin: float = 0.02
    confidence: float = 0.95
    on_inconclusive: OnInconclusive = "fail"
    law: str = "auto"
    min_compute: float | str | None = None
    max_compute: float | None = None
    level: float = 0.9
    seed: int = 0
    config: Path | None = None
    named: Mapping[str, str] = field(default_factory=dict)

    def forecast_options(self) -> dict[str, Any]:
        keys = ("law", "min_compute", "max_compute", "level", "seed")
        return {key: getattr(self, key) for key in keys}

    def error(self, key: str, problem: str) -> InputError:
        """An error about `key` in the words of whoever wrote it."""
        return InputError(f"{self.named.get(key, key)} {problem}", self.named.get(key, key))


def resolve(flags: Mapping[str, Any], config: Path | None = None) -> Policy:
    """The policy of `[gate]` in `config` (default: `rlcast.toml` here, if there is one), where `flags` that
    are not None win. Raises `InputError` for unknown keys, wrong types and values out of range."""
    path = config or (Path(CONFIG_NAME) if Path(CONFIG_NAME).is_file() else None)
    table = read_gate_table(path) if path is not None else {}
    given = {key: value for key, value in flags.items() if value is not None}
    named = {key: f"--{key.replace('_', '-')}" for key in _KEYS}
    named |= {key: f"{path}: [gate] {key}" for key in table if key not in given}
    values = {**table, **given}
    for key in ("candidate", "baseline"):
        if key not in values:
            raise InputError(f"--{key} is missing; give it, or {key} in [gate] of {CONFIG_NAME}", f"--{key}")
    policy = Policy(**values, config=path, named=named)
    _check_ranges(policy)
    return policy


def read_gate_table(path: Path) -> dict[str, Any]:
    """`[gate]` of the file, checked for names and types."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"--config {path} cannot be read ({error.strerror})", "--config") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is no valid TOML: {error}", "--config") from None
    _refuse_unknown(path, "table", document, ("gate",))
    table = document.get("gate", {})
    if not isinstance(table, dict):
        raise InputError(f"{path}: gate must be a table; write [gate] above its keys", "gate")
    _refuse_unknown(path, "key in [gate]", table, tuple(_KEYS))
    return {key: _KEYS[key](f"{path}: [gate] {key}", value) for key, value in table.items()}


def _refuse_unknown(path: Path, what: str, given: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for key in given:
        if key not in known:
            near = get_close_matches(key, known, n=1)
            remedy = f"did you mean '{near[0]}'?" if near else f"known: {', '.join(known)}"
            raise InputError(f"{path}: '{key}' is no {what} that is known; {remedy}", key)


def _check_ranges(policy: Policy) -> None:
    if not 0 <= policy.margin < 1:
        raise policy.error("margin", f"is {policy.margin:g}; give a pass-rate difference from 0 to 1")
    if not 0.5 < policy.confidence < 1:
        raise policy.error(
            "confidence", f"is {policy.confidence:g}; give a probability above 0.5 and below 1"
        )
    if policy.on_inconclusive not in get_args(OnInconclusive):
        known = ", ".join(get_args(OnInconclusive))
        raise policy.error("on_inconclusive", f"is '{policy.on_inconclusive}'; use one of {known}")
    value = baseline_number(policy.baseline)
    if value is not None and not 0 <= value <= 1:
        raise policy.error("baseline", f"is {value:g}; an A is a pass rate from 0 to 1")


def baseline_number(baseline: str | float) -> float | None:
    """The baseline when it is a number, or text of one."""
    try:
        return float(baseline)
    except ValueError:
        return None


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise InputError(f"{name} is {value!r}; give text in quotes", name)
    return value


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InputError(f"{name} is {value!r}; give a number", name)
    return float(value)


def _start(name: str, value: Any) -> float | str:
    return value if value == "auto" else _number(name, value)


def _whole(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InputError(f"{name} is {value!r}; give a whole number", name)
    return value


def _text_or_number(name: str, value: Any) -> str | float:
    return _text(name, value) if isinstance(value, str) else _number(name, value)


#: What `[gate]` may hold: the options of `rlcast gate` under the same names.
_KEYS: dict[str, Callable[[str, Any], Any]] = {
    "candidate": _text,
    "baseline": _text_or_number,
    "margin": _number,
    "confidence": _number,
    "on_inconclusive": _text,
    "law": _text,
    "min_compute": _start,
    "max_compute": _number,
    "level": _number,
    "seed": _whole,
}
