"""MLflow's folder of runs: mlruns/<experiment>/<run>/metrics/<key>, lines of "time value step"."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from pathlib import Path

from rlcast.importers.lines import lines_of
from rlcast.importers.rows import Row

_DEVICES = ("trainer/n_gpus_per_node", "trainer/nnodes")


def mlflow_rows(path: Path) -> Iterator[Row]:
    """One row a value, in the order in which they were logged. `path` is a run's folder or one above it."""
    for meta in sorted(path.rglob("meta.yaml")):
        metrics = meta.parent / "metrics"
        if metrics.is_dir():
            yield from _run(meta.parent, metrics)


def _run(folder: Path, metrics: Path) -> Iterator[Row]:
    name = _first_line(folder / "tags" / "mlflow.runName") or folder.name
    counts = [_first_line(folder / "params" / key) for key in _DEVICES]
    devices = int(counts[0]) * int(counts[1]) if all(count.isdigit() for count in counts) else None
    files = sorted(file for file in metrics.rglob("*") if file.is_file())
    series = [_values(file, file.relative_to(metrics).as_posix()) for file in files]
    for seconds, key, value, step in heapq.merge(*series):
        yield Row(step, {key: value, "timestamp": seconds}, name, devices=devices or None)


def _values(file: Path, key: str) -> Iterator[tuple[float, str, float, int]]:
    for line in lines_of(file):
        if not line.endswith("\n"):
            return  # it is being written
        try:
            milliseconds, value, step = line.split()
            yield int(milliseconds) / 1000.0, key, float(value), int(step)
        except ValueError:
            continue


def _first_line(path: Path) -> str:
    return next((line.strip() for line in lines_of(path)), "") if path.is_file() else ""
