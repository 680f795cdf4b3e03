"""How long a job has held its devices, and whether that is all that it may."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Allocation:
    """What one attempt holds from its claim on. `used_hours` is what earlier attempts were held."""

    n_gpus: int
    cpus: int
    used_hours: float = 0.0
    max_hours: float | None = None
    max_gpu_hours: float | None = None
    _began: float = field(default_factory=time.monotonic)

    @classmethod
    def of(cls, claim: dict[str, Any]) -> Allocation:
        return cls(
            n_gpus=len(claim["devices"] or ()),
            cpus=claim["resources"].get("cpus") or 1,
            used_hours=claim["used_hours"],
            max_hours=claim["max_hours"],
            max_gpu_hours=claim["max_gpu_hours"],
        )

    def hours(self) -> float:
        """Wall hours held, all attempts together."""
        return self.used_hours + (time.monotonic() - self._began) / 3600

    def compute(self) -> dict[str, float]:
        """Device-hours held so far: devices × wall time, whether they were busy or not."""
        hours = self.hours()
        held = {"cpu_hours": hours * self.cpus}
        return {**held, "gpu_hours": hours * self.n_gpus} if self.n_gpus else held

    def spent(self) -> str | None:
        """The budget that is used up, `max_hours` or `max_gpu_hours`; None while there is some left."""
        hours = self.hours()
        if self.max_hours is not None and hours >= self.max_hours:
            return "max_hours"
        if self.max_gpu_hours is not None and hours * self.n_gpus >= self.max_gpu_hours:
            return "max_gpu_hours"
        return None
