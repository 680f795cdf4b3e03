"""Forecasts in a notebook: `from rlcast import forecast; f = forecast(df); f.figure(); f.summary()`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rlcast.errors import InputError
from rlcast.importers import Options, read_logs
from rlcast.tables import CurveRows, parse_unit, read_frame

if TYPE_CHECKING:
    import plotly.graph_objects as go


@dataclass(frozen=True)
class Forecasts:
    """The forecasts of one or several runs.

    `f["run name"]` is one forecast as a dictionary: the same object that the command line prints with
    `--json`, the service stores and the dashboard draws.
    """

    items: list[dict[str, Any]]

    def __getitem__(self, run: str) -> dict[str, Any]:
        for item in self.items:
            if item["run"] == run:
                return item
        raise KeyError(f"no run '{run}'; there are: {', '.join(item['run'] for item in self.items)}")

    def __len__(self) -> int:
        return len(self.items)

    def to_dict(self) -> dict[str, Any]:
        return {"forecasts": self.items}

    def figure(self, **options: Any) -> go.Figure:
        """A plotly figure: points, fit, extrapolation and band. Options: see `rlcast.figures`."""
        from rlcast.figures import forecast_figure

        return forecast_figure(self.items, **options)

    def summary(self) -> str:
        """Verdict in words first, numbers second, as text."""
        from io import StringIO

        from rich.console import Console

        from rlcast.cli.output import print_forecast

        console = Console(width=100, file=StringIO(), color_system=None)
        for item in self.items:
            print_forecast(item, console)
        return console.file.getvalue()  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        return self.summary()


def forecast(
    data: Any,
    pass_rate: Sequence[float] | None = None,
    *,
    run: str | Sequence[str] | None = None,
    x: str | None = None,
    y: str | None = None,
    unit: str | None = None,
    percent: bool = False,
    devices: int | None = None,
    **options: Any,
) -> Forecasts:
    """Forecasts runs from a pandas or polars frame, a table or training log, or two arrays.

    Args:
        data: a frame or the path of a CSV file with columns run, compute, compute_unit, pass_rate (`x`, `y`
            and `unit` name others), or of a log that `rlcast import` reads; or, with `pass_rate`, the
            compute [n] in `unit`.
        devices: of the run, where a log tells times only.
        pass_rate: pass rates [n] in 0..1 when `data` is an array of compute.
        run: only this run, or these.
        options: of `fitting.ForecastOptions`: law, min_compute, max_compute, level, seed, at, reach, …

    Raises `InputError` that names the field and the remedy.
    """
    from rlcast.curves import curve_of, forecast_curve, options_of

    if pass_rate is not None:
        runs = {"curve": _rows_of_arrays(data, pass_rate, unit or "gpu_hours")}
    elif isinstance(data, str | Path):
        unit = parse_unit(unit, "unit") if unit else None
        log = Options(x=x, y=y, unit=unit, devices=devices, high=100.0 if percent else 1.0)
        runs = {one.rows.run: one.rows for one in read_logs([data], options=log)}
    else:
        runs = read_frame(data, x=x, y=y, unit=unit, percent=percent).runs
    names = [run] if isinstance(run, str) else list(run or runs)
    for name in names:
        if name not in runs:
            raise InputError(f"run '{name}' is not in the data; there are: {', '.join(runs)}", "run")
    for key in ("at", "reach"):
        if key in options:
            options[key] = tuple(np.atleast_1d(options[key]).astype(float).tolist())
    fit_options = options_of(options)
    return Forecasts([forecast_curve(curve_of(runs[name], name), fit_options) for name in names])


def _rows_of_arrays(compute: Any, pass_rate: Any, unit: str) -> CurveRows:
    rows = CurveRows("curve", unit)
    rows.compute = np.asarray(compute, dtype=np.float64).tolist()
    rows.pass_rate = np.asarray(pass_rate, dtype=np.float64).tolist()
    if len(rows.compute) != len(rows.pass_rate):
        raise InputError(
            f"compute has {len(rows.compute)} values and pass_rate {len(rows.pass_rate)}; give one a point",
            "pass_rate",
        )
    rows.n_prompts = [None] * len(rows.compute)
    rows.n_samples = [None] * len(rows.compute)
    return rows
