"""Jobs and gate decisions as pages show them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

from fitting.units import unit_label
from rlcast.figure_style import number_text
from web.gateway import Gateway

OPEN_STATES = ("queued", "starting", "running")
_JOB_TONES = {
    "running": "good",
    "starting": "good",
    "finished": "good",
    "stopped": "warn",
    "failed": "bad",
    "cancelled": "warn",
}
_GATE_TONES = {"pass": "good", "fail": "bad", "inconclusive": "warn"}
N_LATEST = 5


@dataclass(frozen=True)
class JobLine:
    """`fraction` of its steps that is done, None while unknown; `note` says how far it is in words."""

    id: str
    name: str
    state: str
    tone: str
    fraction: float | None
    note: str | None


@dataclass(frozen=True)
class GateLine:
    id: str
    candidate: str
    baseline: str
    verdict: str
    tone: str
    note: str


async def latest(gateway: Gateway) -> dict[str, Any]:
    """The newest jobs (open ones first) and gate decisions, for the foot of the Compare page."""
    jobs, gates = await asyncio.gather(gateway.items("/jobs", 20), gateway.items("/gates", N_LATEST))
    jobs.sort(key=lambda job: job["state"] not in OPEN_STATES)  # stable: newest first within each
    return {"jobs": [job_line(job) for job in jobs[:N_LATEST]], "gates": [gate_line(gate) for gate in gates]}


def job_line(job: Mapping[str, Any]) -> JobLine:
    progress = job.get("progress") or {}
    note = job.get("error") or _progress_note(progress)
    fraction = job_fraction(job)
    return JobLine(job["id"], job["name"], job["state"], job_tone(job), fraction, note)


def job_tone(job: Mapping[str, Any]) -> str:
    return _JOB_TONES.get(str(job["state"]), "")


def job_fraction(job: Mapping[str, Any]) -> float | None:
    """Steps done of all steps; shown while the job is open only."""
    progress = job.get("progress") or {}
    step, total = progress.get("step"), progress.get("total_steps")
    if job["state"] not in OPEN_STATES or not _is_number(step) or not _is_number(total) or total <= 0:
        return None
    return float(min(1.0, max(0.0, step / total)))


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _progress_note(progress: Mapping[str, Any]) -> str | None:
    parts = []
    if _is_number(progress.get("step")) and _is_number(progress.get("total_steps")):
        parts.append(f"step {progress['step']:.0f} of {progress['total_steps']:.0f}")
    if isinstance(progress.get("phase"), str):
        parts.append(progress["phase"])
    if _is_number(progress.get("reward_mean")):
        parts.append(f"reward {progress['reward_mean']:.3f}")
    parts += [
        f"{progress[u]:.3g} {unit_label(u)}"
        for u in ("gpu_hours", "cpu_hours")
        if _is_number(progress.get(u))
    ]
    return " · ".join(parts) or None


#: What a trainer reports beside its step, with the words for it.
_METERS = {
    "phase": "Phase",
    "loss": "Loss",
    "reward_mean": "Mean reward",
    "entropy": "Entropy",
    "truncated": "Truncated",
    "lag_mean": "Mean lag",
    "lag_max": "Most lag",
    "grad_norm": "Gradient norm",
    "tokens": "Tokens",
    "gpu_hours": "GPU-hours",
    "cpu_hours": "CPU-hours",
}


def job_meters(job: Mapping[str, Any]) -> list[tuple[str, str]]:
    progress = job.get("progress") or {}
    return [
        (label, number_text(progress[key]) if _is_number(progress[key]) else str(progress[key]))
        for key, label in _METERS.items()
        if progress.get(key) is not None
    ]


def gate_tone(gate: Mapping[str, Any]) -> str:
    return _GATE_TONES.get(str(gate["verdict"]), "")


def gate_line(gate: Mapping[str, Any]) -> GateLine:
    return GateLine(
        gate["id"],
        gate["candidate_name"],
        gate["baseline_name"],
        gate["verdict"],
        gate_tone(gate),
        gate_sentence(gate),
    )


def gate_sentence(gate: Mapping[str, Any]) -> str:
    """The decision and what it rests on, in a sentence."""
    metric, margin = gate["metric"], f"{gate['margin']:.3g}"
    low, high = gate["difference"].get("low"), gate["difference"].get("high")
    seen = (
        ""
        if low is None or high is None
        else f" ({gate['confidence']:.0%} interval {low:+.3f} to {high:+.3f})"
    )
    value = gate["difference"].get("value")
    by = "" if value is None else f": difference {value:+.3f}{seen}"
    if gate["verdict"] == "pass":
        return f"{metric} is not below the baseline's by more than {margin}{by}."
    if gate["verdict"] == "fail":
        return f"{metric} is below the baseline's by more than {margin}{by}."
    return f"The points do not tell whether {metric} is below the baseline's by more than {margin}{by}."
