"""From rows of a table to forecasts: the bridge between the reader and `fitting`."""

from __future__ import annotations

from typing import Any

import numpy as np

from fitting import Curve, FitError, ForecastOptions, forecast
from rlcast.errors import InputError
from rlcast.tables import CurveRows


def curve_of(rows: CurveRows, name: str | None = None) -> Curve:
    """The curve of one run. Raises `InputError` that names the run, the field and the remedy."""
    name = name or rows.run
    with _named(name):
        return Curve(
            compute=np.asarray(rows.compute, dtype=np.float64),
            pass_rate=np.asarray(rows.pass_rate, dtype=np.float64),
            unit=rows.unit,
            name=name,
            n_prompts=_counts(rows.n_prompts),
            n_samples=_counts(rows.n_samples),
        )


def options_of(options: dict[str, Any]) -> ForecastOptions:
    """Options of a forecast; an impossible value is an `InputError`."""
    with _named(None):
        return ForecastOptions(**options)


def forecast_curve(curve: Curve, options: ForecastOptions) -> dict[str, Any]:
    """The forecast object of one curve, as JSON-ready data."""
    with _named(curve.name):
        return dict(forecast(curve, options).to_dict())


def _counts(values: list[int | None]) -> np.ndarray | None:
    known = [value for value in values if value is not None]
    return np.asarray(known, dtype=np.int64) if known and len(known) == len(values) else None


class _named:
    """Turns a `FitError` into an `InputError` that says which run it was."""

    def __init__(self, run: str | None) -> None:
        self.run = run

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, FitError):
            prefix = f"run '{self.run}': " if self.run else ""
            raise InputError(f"{prefix}{error}", error.field) from error
