"""The wire format of protocol buffers, as far as trackers' files need it: no schema, no dependency."""

from __future__ import annotations

import struct
from collections.abc import Iterator


class CutMessage(Exception):
    """The bytes end within a message."""


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """(field number, value) of a message: whole numbers as int, all else as bytes."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        kind = tag & 7
        if kind == 0:
            number, at = _varint(data, at)
            yield tag >> 3, number
            continue
        size = {1: 8, 5: 4}.get(kind)
        if kind == 2:
            size, at = _varint(data, at)
        if size is None or at + size > len(data):
            raise CutMessage
        yield tag >> 3, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for i, byte in enumerate(data[at : at + 10]):
        value |= (byte & 0x7F) << (7 * i)
        if byte < 0x80:
            return value, at + i + 1
    raise CutMessage


def text(value: int | bytes) -> str:
    return value.decode("utf-8", errors="replace") if isinstance(value, bytes) else ""


def float32(value: int | bytes) -> float:
    return (
        float(struct.unpack("<f", value)[0]) if isinstance(value, bytes) and len(value) == 4 else float("nan")
    )


def float64(value: int | bytes) -> float:
    return (
        float(struct.unpack("<d", value)[0]) if isinstance(value, bytes) and len(value) == 8 else float("nan")
    )
