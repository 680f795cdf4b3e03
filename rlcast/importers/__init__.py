"""Importers of training logs: `read_logs` for files and folders, `LogReader` for a log that grows.

`registry.py` lists the formats. A format turns lines or files into rows; `collect.py` turns the rows of a
run into its curve, the same way for all formats.
"""

from __future__ import annotations

from rlcast.importers.read import Imported, LogReader, read_logs
from rlcast.importers.registry import FORMATS
from rlcast.importers.rows import Options, Point, Report, Row

__all__ = ["FORMATS", "Imported", "LogReader", "Options", "Point", "Report", "Row", "read_logs"]
