"""Python dictionaries printed on a console: slime's `eval 12: {...}`, and TRL's and ms-swift's rows."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from rlcast.importers.jsonl import swift_row
from rlcast.importers.rows import BrokenLine, Row
from rlcast.importers.values import numbers, step_of

_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
# `step N` counts optimiser steps, of which a rollout has several: rollouts are the axis here.
_SLIME = re.compile(r"(?:^|[\s\]:-])(?:eval|rollout|perf|passrate) (\d+): (\{.*)$")
_NUMPY = re.compile(r"\bnp\.(?:float|int)\d*\(([^()]*)\)")
_BARE = re.compile(r"(?<![\w'\"])(nan|inf|-inf)(?![\w'\"])")


def looks_like_slime(line: str) -> bool:
    return _SLIME.search(_ANSI.sub("", line)) is not None


def looks_like_dicts(line: str) -> bool:
    text = _ANSI.sub("", line).strip()
    return text.startswith("{'") and text.endswith("}") and ("'epoch'" in text or "'global_step" in text)


def literal(text: str) -> dict[str, Any]:
    """A printed dictionary. Raises `BrokenLine` when it is cut or holds more than plain values."""
    text = _BARE.sub(r"'\1'", _NUMPY.sub(r"\1", text.strip()))
    try:
        data = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise BrokenLine from None
    if not isinstance(data, dict):
        raise BrokenLine
    return {str(key): float(v) if v in ("nan", "inf", "-inf") else v for key, v in data.items()}


class Slime:
    """Rows of slime's (and miles', vime's) console. The step is the rollout's number."""

    devices: int | None = None
    devices_from = ""

    def rows(self, line: str) -> Iterator[Row]:
        found = _SLIME.search(_ANSI.sub("", line))
        if found:
            yield Row(int(found[1]), numbers(literal(found[2])))


class Dicts:
    """Rows that transformers' trainers print. Only ms-swift's tell the step."""

    devices: int | None = None
    devices_from = ""

    def rows(self, line: str) -> Iterator[Row]:
        text = _ANSI.sub("", line).strip()
        start = text.find("{'")
        if start < 0 or ("'epoch'" not in text and "'global_step" not in text):
            return
        data = literal(text[start:])
        if "global_step/max_steps" in data:
            yield swift_row(data)
        else:
            yield Row(step_of(data), numbers(data))
