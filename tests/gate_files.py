"""Noiseless curves along the law, as files for the gate."""

from __future__ import annotations

from pathlib import Path

import numpy as np


def write_curve(path: Path, a: float, end: float = 40_000.0, cmid: float = 2000.0, run: str = "r") -> Path:
    """30 points of R = 0.3 + (a - 0.3) / (1 + (cmid / C)^2) from 200 to `end` GPU-hours."""
    compute = np.geomspace(200.0, end, 30)
    rate = 0.3 + (a - 0.3) / (1.0 + (cmid / compute) ** 2)
    lines = ["run,compute,compute_unit,pass_rate"]
    lines += [f"{run},{c!r},gpu_hours,{r!r}" for c, r in zip(compute.tolist(), rate.tolist(), strict=True)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")
    return path


def write_early_curve(path: Path) -> Path:
    """A curve that has not bent yet: against it and for it nothing can be said."""
    return write_curve(path, 0.7, end=9_000.0, cmid=30_000.0)
