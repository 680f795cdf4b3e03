"""Files that are one JSON document: notebooks, trainer states, lists of rows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rlcast.errors import InputError
from rlcast.importers.jsonl import row_of, swift_row
from rlcast.importers.lines import lines_of
from rlcast.importers.rows import Row
from rlcast.importers.values import numbers, step_of


def document(path: Path) -> Any:
    try:
        return json.loads("".join(lines_of(path)))
    except ValueError as error:
        raise InputError(f"{path} is not a whole JSON document ({error})", "file") from None


def notebook_lines(path: Path) -> Iterator[str]:
    """Source and text outputs of a notebook's code cells, line by line, as if it were one console."""
    for cell in _objects(document(path), "cells"):
        if cell.get("cell_type") != "code":
            continue
        yield from _joined(cell.get("source")).splitlines(keepends=True)
        for output in _objects(cell, "outputs"):
            data = output.get("data")
            text = output.get("text") or (data.get("text/plain") if isinstance(data, dict) else None)
            # An output ends with its cell: its last line is whole.
            yield from f"{_joined(text)}\n".splitlines(keepends=True)


def _objects(data: Any, key: str) -> list[dict[str, Any]]:
    """The objects of the list under `key`; a damaged document has none."""
    found = data.get(key) if isinstance(data, dict) else None
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _joined(text: Any) -> str:
    return "".join(map(str, text)) if isinstance(text, list) else str(text or "")


def trainer_state(path: Path) -> Iterator[Row]:
    """`log_history` of a trainer_state.json, or of the newest checkpoint in a folder."""
    if path.is_dir():
        path = newest_state(path)
    data = document(path)
    history = data.get("log_history") if isinstance(data, dict) else data
    if not isinstance(history, list):
        raise InputError(f"{path} has no log_history", "file")
    for row in history:
        if isinstance(row, dict):
            swift = "global_step/max_steps" in row
            yield swift_row(row) if swift else Row(step_of(row), numbers(row))


def newest_state(folder: Path) -> Path:
    """The trainer_state.json of the highest-numbered checkpoint: it holds the longest history."""
    states = [*folder.glob("trainer_state.json"), *folder.glob("checkpoint-*/trainer_state.json")]
    return max(states, key=lambda state: _number(state.parent.name))


def _number(name: str) -> float:
    found = re.search(r"checkpoint-(\d+)$", name)
    # A state beside the checkpoints is written when training ends.
    return float(found[1]) if found else float("inf")


def json_rows(path: Path) -> Iterator[Row]:
    """A JSON list of objects: the history that trackers export."""
    data = document(path)
    if isinstance(data, dict):
        data = next((value for value in data.values() if isinstance(value, list)), [])
    for row in data if isinstance(data, list) else []:
        if isinstance(row, dict):
            yield row_of(row)
