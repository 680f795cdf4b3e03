"""Small logs in the shape that each trainer writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlcast.importers import Imported, Options, read_logs


@pytest.fixture
def log(tmp_path: Path):
    """Writes a file under the test's folder and returns its path."""

    def write(text: str | bytes, name: str = "run.log") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


@pytest.fixture
def read_one():
    """Reads the one run of some paths."""

    def read(*paths: Path, format_name: str = "auto", **options) -> Imported:
        [found] = read_logs(paths, format_name, Options(**options))
        return found

    return read
