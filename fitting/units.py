"""How units of compute are written for people: in verdicts, tables and charts alike."""

from __future__ import annotations

_LABELS: dict[str, str] = {
    "gpu_hours": "GPU-hours",
    "cpu_hours": "CPU-hours",
    "flops": "FLOPs",
    "tokens": "tokens",
    "samples": "samples",
    "steps": "steps",
    "usd": "US dollars",
}


def unit_label(unit: str) -> str:
    """The unit as people write it ("GPU-hours"); unknown units as they are."""
    return _LABELS.get(unit, unit)
