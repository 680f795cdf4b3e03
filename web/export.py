"""The chart's numbers as CSV files, safe to open in a spreadsheet."""

from __future__ import annotations

import csv
import io
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

ForecastDict = Mapping[str, Any]

# A cell that starts with one of these is a formula to a spreadsheet, in its full-width form as well.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")


def safe_text(text: object) -> str:
    """A text cell that no spreadsheet takes for a formula. Numbers must not go through here."""
    plain = str(text)
    first = unicodedata.normalize("NFKC", plain[:1])
    return f"'{plain}" if first.startswith(_FORMULA_STARTS) else plain


def _csv(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    file = io.StringIO()
    writer = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return file.getvalue()


def points_csv(forecasts: Sequence[ForecastDict]) -> str:
    """Every measured point. Its first columns are those that `rlcast forecast` and `rlcast import` read."""
    header = ("run", "compute", "compute_unit", "pass_rate", "in_fit", "forecast")
    return _csv(
        header,
        (
            (
                safe_text(f["run"]),
                compute,
                f["unit"],
                rate,
                "yes" if used else "no",
                f.get("inputs_sha256") or "",
            )
            for f in forecasts
            for compute, rate, used in zip(
                f["points"]["compute"], f["points"]["pass_rate"], f["points"]["used"], strict=True
            )
        ),
    )


def forecasts_csv(forecasts: Sequence[ForecastDict]) -> str:
    """The law and its bands on the chart's grid, one row a compute."""
    columns = ("value", "low", "high", "low50", "high50")
    header = ("run", "compute", "compute_unit", *columns, "level", "law", "forecast")

    def rows() -> Iterable[Sequence[object]]:
        for f in forecasts:
            grid = f.get("grid") or {"compute": []}
            for i, compute in enumerate(grid["compute"]):
                band = [grid[c][i] if grid.get(c) and grid[c][i] is not None else "" for c in columns]
                yield (
                    safe_text(f["run"]),
                    compute,
                    f["unit"],
                    *band,
                    f["level"],
                    f["law"],
                    f["inputs_sha256"],
                )

    return _csv(header, rows())
