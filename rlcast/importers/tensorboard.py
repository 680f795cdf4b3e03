"""TensorBoard's event files, read directly: nothing is sampled, and a cut file is read up to the cut.

A file is a row of records: length (8 bytes), its checksum (4), a message (tensorflow's event.proto), its
checksum (4). Files of one folder are the attempts of one run, in the order of the time in their names.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

from rlcast.importers.protobuf import CutMessage, fields, float32, float64, text
from rlcast.importers.rows import Row

# Field numbers: Event, Summary and its Value, TensorProto.
_WALL_TIME, _STEP, _SUMMARY = 1, 2, 5
_VALUE, _TAG, _SIMPLE, _TENSOR = 1, 1, 2, 8
_DTYPE, _CONTENT, _FLOATS, _DOUBLES = 1, 4, 5, 6
_MAX_RECORD_BYTES = 1 << 30


def event_rows(path: Path) -> Iterator[Row]:
    """One row a scalar: its tag and the clock. Each folder with event files is a run."""
    files = (
        sorted(path.rglob("*tfevents*"), key=lambda file: (str(file.parent), file.name))
        if path.is_dir()
        else [path]
    )
    folders = {file.parent for file in files}
    for file in files:
        run = file.parent.resolve().name if len(folders) > 1 else None
        for record in _records(file):
            try:
                yield from _scalars(record, run)
            except CutMessage:
                break


def _records(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while len(head := file.read(12)) == 12:
            (size,) = struct.unpack("<Q", head[:8])
            if size > _MAX_RECORD_BYTES:
                return
            body = file.read(size)
            if len(body) < size or len(file.read(4)) < 4:
                return
            yield body


def _scalars(record: bytes, run: str | None) -> Iterator[Row]:
    wall_time, step, summaries = 0.0, 0, []
    for number, value in fields(record):
        if number == _WALL_TIME:
            wall_time = float64(value)
        elif number == _STEP and isinstance(value, int):
            step = value
        elif number == _SUMMARY and isinstance(value, bytes):
            summaries.append(value)
    for summary in summaries:
        for number, value in fields(summary):
            if number == _VALUE and isinstance(value, bytes):
                tag, scalar = _scalar(value)
                if scalar is not None and step < 2**53:
                    yield Row(step, {tag: scalar, "wall_time": wall_time}, run)


def _scalar(message: bytes) -> tuple[str, float | None]:
    """Tag and number of a value; the number is None for texts, images and histograms."""
    tag, number = "", None
    for field, value in fields(message):
        if field == _TAG:
            tag = text(value)
        elif field == _SIMPLE:
            number = float32(value)
        elif field == _TENSOR and isinstance(value, bytes):
            number = _tensor(value)
    return tag, number


def _tensor(message: bytes) -> float | None:
    """A tensor of one float or double: newer writers store scalars so."""
    kind, content = 0, b""
    for field, value in fields(message):
        if field == _DTYPE and isinstance(value, int):
            kind = value
        elif field in (_CONTENT, _FLOATS, _DOUBLES) and isinstance(value, bytes):
            content = value
    if kind == 1 and len(content) == 4:
        return float32(content)
    return float64(content) if kind == 2 and len(content) == 8 else None
