"""Checks one evaluation as `run.log` gets it, and makes it what the service takes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rlcast.errors import InputError
from rlcast.tracking.identity import UNITS, RunIdentity, check_label

_MAX_COUNT = 2**53 - 1
_MAX_PROMPTS = 100_000
_MAX_SAMPLES = 2**15 - 1


def evaluation_of(
    identity: RunIdentity,
    *,
    step: Any,
    compute: Mapping[str, Any],
    pass_rate: Any = None,
    solved: Sequence[Any] | None = None,
    samples: Any = None,
    prompts: Any = None,
    truncated: Any = None,
    benchmark: str | None = None,
) -> dict[str, Any]:
    """An evaluation for `POST /runs/{run}/evaluations`. Raises `InputError` naming field and remedy.

    `solved` are the passes of each prompt, shape [prompts], out of `samples`. Numbers may be of numpy or
    torch.
    """
    item: dict[str, Any] = {"step": _count("step", step), "compute": _compute(identity, compute, step)}
    if solved is not None:
        item |= _of_counts(solved, samples)
        _agrees(item, pass_rate, prompts)
    elif pass_rate is not None:
        item["pass_rate"] = _fraction("pass_rate", pass_rate)
        item |= {
            key: _count(field, value, 1)
            for key, field, value in (("n_prompts", "prompts", prompts), ("n_samples", "samples", samples))
            if value is not None
        }
    else:
        raise InputError("give pass_rate=…, or solved=[passes of each prompt] with samples=…", "pass_rate")
    if truncated is not None:
        item["truncated"] = _fraction("truncated", truncated)
    if benchmark is not None:
        item["benchmark"] = check_label("benchmark", benchmark)
    item["measured_at"] = datetime.now(UTC).isoformat(timespec="milliseconds")
    return item


def _of_counts(solved: Sequence[Any], samples: Any) -> dict[str, Any]:
    counts = [_count("solved", value) for value in solved]
    if not 1 <= len(counts) <= _MAX_PROMPTS:
        raise InputError(f"solved has {len(counts)} prompts; give 1 to {_MAX_PROMPTS:,}", "solved")
    if samples is None:
        raise InputError("solved needs samples=…, the samples drawn for each prompt", "samples")
    n_samples = _count("samples", samples, 1)
    if n_samples > _MAX_SAMPLES:
        raise InputError(f"samples is {n_samples}; {_MAX_SAMPLES} at most", "samples")
    if max(counts) > n_samples:
        raise InputError(f"solved has a prompt with {max(counts)} passes of {n_samples} samples", "solved")
    rate = sum(counts) / (len(counts) * n_samples)
    return {"pass_rate": rate, "n_prompts": len(counts), "n_samples": n_samples, "solved": counts}


def _agrees(item: dict[str, Any], pass_rate: Any, prompts: Any) -> None:
    """What is said twice must be the same."""
    if pass_rate is not None and abs(_fraction("pass_rate", pass_rate) - item["pass_rate"]) > 1e-4:
        raise InputError(
            f"pass_rate is {float(pass_rate):g} but solved gives {item['pass_rate']:g}; leave pass_rate out",
            "pass_rate",
        )
    if prompts is not None and _count("prompts", prompts, 1) != item["n_prompts"]:
        raise InputError(
            f"prompts is {prompts} but solved has {item['n_prompts']}; leave prompts out", "prompts"
        )


def _compute(identity: RunIdentity, compute: Mapping[str, Any], step: Any) -> dict[str, float]:
    unit = identity.compute_unit
    amounts: dict[str, float] = {"steps": float(_count("step", step))} if unit == "steps" else {}
    for key, value in compute.items():
        if key not in UNITS:
            raise InputError(f"{key} is no unit of compute; use one of {', '.join(UNITS)}", key)
        amounts[key] = _amount(key, value)
    if unit not in amounts:
        raise InputError(
            f"this evaluation has no {unit}, the unit of the run: pass {unit}=… to log"
            + (", or devices=… to start_run to have it measured" if unit.endswith("_hours") else ""),
            unit,
        )
    return amounts


def _number(field: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, RuntimeError):  # RuntimeError: a torch tensor of several values
        raise InputError(f"{field} is {value!r}; give a number", field) from None
    if not math.isfinite(number):
        raise InputError(f"{field} is {number}; leave an evaluation without a result out", field)
    return number


def _amount(field: str, value: Any) -> float:
    number = _number(field, value)
    if not 0 <= number < 1e300:
        raise InputError(f"{field} is {number:g}; give what was used since the start, from 0", field)
    return number


def _fraction(field: str, value: Any) -> float:
    number = _number(field, value)
    if not 0 <= number <= 1:
        raise InputError(f"{field} is {number:g}; give a fraction from 0 to 1 (percent / 100)", field)
    return number


def _count(field: str, value: Any, least: int = 0) -> int:
    number = _number(field, value)
    if number != int(number) or not least <= number <= _MAX_COUNT:
        raise InputError(f"{field} is {number:g}; give a whole number from {least}", field)
    return int(number)
