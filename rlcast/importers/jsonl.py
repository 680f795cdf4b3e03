"""One JSON object a line: any logger's, verl's file logger, prime-rl's and ms-swift's."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from rlcast.importers.rows import BrokenLine, Row
from rlcast.importers.values import axis_of, flat, numbers, run_of, seconds_of, step_of
from rlcast.importers.verl import with_total


def decode(line: str) -> dict[str, Any] | None:
    """The object of a line; None for a blank line. Raises `BrokenLine`."""
    if not line.strip():
        return None
    try:
        data = json.loads(line)
    except ValueError:
        raise BrokenLine from None
    if not isinstance(data, dict):
        raise BrokenLine
    return data


class Jsonl:
    """Rows of any JSONL file; nested objects get keys joined by "/"."""

    devices: int | None = None
    devices_from = ""

    def rows(self, line: str) -> Iterator[Row]:
        data = decode(line)
        if data is not None:
            yield row_of(data)


def row_of(data: dict[str, Any]) -> Row:
    """One object as a row. `compute` with `compute_unit`, or as {unit: amount}, is told by its unit."""
    data = flat(data)
    unit = data.get("compute_unit")
    if isinstance(unit, str) and "compute" in data:
        data[unit] = data["compute"]
    for key in [key for key in data if key.startswith("compute/")]:
        data[key.removeprefix("compute/")] = data[key]
    return Row(step_of(data), numbers(data), run_of(data), _prompts(data), axis=axis_of(data))


def _prompts(data: dict[str, Any]) -> int | None:
    value = data.get("n_prompts")
    return value if isinstance(value, int) and value > 0 else None


class VerlJsonl:
    """verl's file logger: `{"step": N, "data": {...}}`."""

    devices: int | None = None
    devices_from = ""

    def rows(self, line: str) -> Iterator[Row]:
        data = decode(line)
        if data is None:
            return
        inner = data.get("data")
        if not isinstance(inner, dict):
            raise BrokenLine
        values = numbers(flat(inner))
        with_total(values)
        yield Row(step_of(data), values)


_VERSION = re.compile(r"^eval/(.+)/policy_version$")


class PrimeRl:
    """prime-rl's metrics.jsonl: several processes write rows of one step.

    An evaluation belongs to the weights that it measured, so `policy_version` is its step.
    """

    devices: int | None = None
    devices_from = ""

    def rows(self, line: str) -> Iterator[Row]:
        data = decode(line)
        if data is None:
            return
        values = numbers(flat(data))
        versions = {m[1]: int(value) for key, value in values.items() if (m := _VERSION.match(key))}
        step = step_of(data)
        rest = dict(values)
        for env, version in versions.items():
            scores = {key: rest.pop(key) for key in values if key.startswith(f"eval/{env}/")}
            yield Row(version, scores)
        yield Row(step, rest)


class Swift:
    """ms-swift's logging.jsonl: the step is in "10/560", time in "4h 30m 5s"."""

    devices: int | None = None
    devices_from = ""

    def rows(self, line: str) -> Iterator[Row]:
        data = decode(line)
        if data is None:
            return
        yield swift_row(data)


def swift_row(data: dict[str, Any]) -> Row:
    values = numbers(flat(data))
    done = str(data.get("global_step/max_steps") or "").partition("/")[0]
    seconds = seconds_of(str(data.get("elapsed_time") or ""))
    if seconds:
        values["elapsed_time"] = seconds
    return Row(int(done) if done.isdigit() else step_of(data), values)
