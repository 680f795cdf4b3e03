"""A W&B run that was logged offline: `run-<id>.wandb`, also one that was cut.

The file is a 7-byte head and blocks of 32,768 bytes; a record may span blocks. Its messages are those
of W&B's wandb_internal.proto (Record, HistoryRecord, RunRecord), read by field number.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from rlcast.errors import InputError
from rlcast.importers.protobuf import CutMessage, fields, float64, text
from rlcast.importers.rows import Row
from rlcast.importers.values import flat, numbers, step_of

HEAD = b":W&B"
_BLOCK = 32_768
_WHOLE, _FIRST, _LAST = 1, 2, 4
# Field numbers in wandb_internal.proto.
_HISTORY, _CONFIG, _RUN = 2, 5, 17
_RUN_ID, _RUN_CONFIG, _RUN_NAME = 1, 4, 8
_KEY, _NESTED_KEY, _INTEGER, _NUMBER, _TEXT, _JSON, _VALUE_JSON = 1, 2, 5, 6, 7, 8, 16


def wandb_rows(path: Path) -> Iterator[Row]:
    """Rows of the history, under the trainer's own step where it logs one."""
    files = sorted(path.rglob("*.wandb")) if path.is_dir() else [path]
    for file in files:
        yield from _rows(file)


def _rows(path: Path) -> Iterator[Row]:
    name = path.stem
    config: dict[str, Any] = {}
    for record in records(path):
        try:
            for number, value in fields(record):
                if number == _RUN and isinstance(value, bytes):
                    name, started = _run(value, name)
                    config |= started
                elif number == _CONFIG and isinstance(value, bytes):
                    config |= flat(_items(value))
                elif number == _HISTORY and isinstance(value, bytes):
                    data = flat(_items(value))
                    yield Row(step_of(data), numbers(data), name, devices=_devices(config))
        except CutMessage:
            return


def records(path: Path) -> Iterator[bytes]:
    """The whole records of the file; it ends where the file was cut or damaged."""
    with path.open("rb") as file:
        if not file.read(7).startswith(HEAD):
            raise InputError(f"{path} is not an offline run of W&B", "file")
        parts: list[bytes] = []
        while (chunk := _chunk(file)) is not None:
            kind, body = chunk
            parts = [body] if kind in (_WHOLE, _FIRST) else [*parts, body]
            if kind in (_WHOLE, _LAST):
                yield b"".join(parts)


def _chunk(file: IO[bytes]) -> tuple[int, bytes] | None:
    """The next part of a record. No part begins in the last 6 bytes of a block."""
    left = _BLOCK - file.tell() % _BLOCK
    if left < 7:
        file.read(left)
    head = file.read(7)
    if len(head) < 7:
        return None
    size, kind = int.from_bytes(head[4:6], "little"), head[6]
    body = file.read(size)
    if len(body) < size or zlib.crc32(head[6:7] + body) != int.from_bytes(head[:4], "little"):
        return None
    return kind, body


def _items(message: bytes) -> dict[str, Any]:
    """The items of a history or configuration record (field 1 of both), by key."""
    data: dict[str, Any] = {}
    for number, item in fields(message):
        if number != 1 or not isinstance(item, bytes):
            continue
        keys, value = [], None
        for part, content in fields(item):
            if part in (_KEY, _NESTED_KEY):
                keys.append(text(content))
            else:
                value = _value(part, content)
        data["/".join(keys)] = value
    return data


def _value(part: int, content: int | bytes) -> Any:
    """An item's value: JSON in all versions, plain types as well since 0.31."""
    if part in (_JSON, _VALUE_JSON):
        try:
            return json.loads(text(content))
        except ValueError:
            return None
    if part == _INTEGER and isinstance(content, int):
        return content - (1 << 64) if content >= 1 << 63 else content
    if part == _NUMBER:
        return float64(content)
    return text(content) if part == _TEXT else None


def _run(message: bytes, name: str) -> tuple[str, dict[str, Any]]:
    config: dict[str, Any] = {}
    found = ""
    for number, value in fields(message):
        if number == _RUN_NAME or (number == _RUN_ID and not found):
            found = text(value)
        elif number == _RUN_CONFIG and isinstance(value, bytes):
            config |= flat(_items(value))
    return found or name, config


def _devices(config: dict[str, Any]) -> int | None:
    """verl's configuration tells the devices."""
    gpus, nodes = config.get("trainer/n_gpus_per_node"), config.get("trainer/nnodes")
    return gpus * nodes if isinstance(gpus, int) and isinstance(nodes, int) and gpus * nodes > 0 else None
