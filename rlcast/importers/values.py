"""Numbers and steps out of decoded JSON objects."""

from __future__ import annotations

from typing import Any

#: Keys that hold the training step, best first: a trainer's own step before the count of log calls.
STEP_KEYS = (
    "step",
    "global_step",
    "training/global_step",
    "train/global_step",
    "eval/global_step",
    "trainer/global_step",
    "training_step",
    "eval/step",
    "rollout/step",
    "train/step",
    "iteration",
    "trainer_model_version",
    "_step",
)
RUN_KEYS = ("run", "run_name")


def flat(data: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested objects with their keys joined by "/"."""
    out: dict[str, Any] = {}
    for key, value in data.items():
        if isinstance(value, dict):
            out |= flat(value, f"{prefix}{key}/")
        else:
            out[f"{prefix}{key}"] = value
    return out


def numbers(data: dict[str, Any]) -> dict[str, float]:
    """The entries that are numbers; W&B writes "NaN" and "Infinity" as text."""
    return {key: float(value) for key, value in data.items() if is_number(value)}


def is_number(value: Any) -> bool:
    if isinstance(value, str):
        return value in ("NaN", "Infinity", "-Infinity")
    return isinstance(value, int | float) and not isinstance(value, bool)


def step_of(data: dict[str, Any], keys: tuple[str, ...] = STEP_KEYS) -> int | None:
    """The training step of a row; None when it has none."""
    key = axis_of(data, keys)
    return max(int(data[key]), 0) if key else None


def axis_of(data: dict[str, Any], keys: tuple[str, ...] = STEP_KEYS) -> str:
    """The key that holds the step; empty when there is none."""
    return next((key for key in keys if _is_step(data.get(key))), "")


def _is_step(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 2**53


def run_of(data: dict[str, Any]) -> str | None:
    return next((str(data[key]) for key in RUN_KEYS if isinstance(data.get(key), str) and data[key]), None)


def seconds_of(text: str) -> float | None:
    """Seconds in "4h 30m 5s" or "1d 2h"; None when it is no such text."""
    per = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0}
    try:
        return sum(float(part[:-1]) * per[part[-1]] for part in text.split())
    except (ValueError, KeyError, IndexError):
        return None
