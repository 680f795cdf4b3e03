"""Decides whether a candidate keeps up with a baseline, and keeps the decision with all it was made from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from api.errors import NotFound
from api.events import service as events
from api.forecasts import service as forecasts
from api.forecasts.worker import GateTask
from api.gates.models import Gate
from api.gates.schemas import GateRequest
from api.lookup import parse_id
from api.paging import Sort, fetch_page


async def prepare(session: AsyncSession, asked: GateRequest) -> GateTask:
    """Reads the points of both sides. Raises `NotFound` or `Invalid`."""
    candidate = await forecasts.subject_named(session, asked.candidate)
    subjects = [candidate]
    if isinstance(asked.baseline, str):
        subjects.append(await forecasts.subject_named(session, asked.baseline))
    axes = forecasts.common_axes((run for subject in subjects for run in subject.runs), asked)
    tasks = [await forecasts.task_of(session, subject, axes, asked) for subject in subjects]
    baseline = tasks[1] if isinstance(asked.baseline, str) else float(asked.baseline)
    return GateTask(tasks[0], baseline, asked.margin, asked.confidence)


async def record(session: AsyncSession, task: GateTask, answer: dict[str, Any]) -> Gate:
    """Stores a decision and announces it."""
    baseline_name = f"{task.baseline:g}" if isinstance(task.baseline, float) else task.baseline.name
    gate = Gate(
        verdict=answer["decision"]["verdict"],
        candidate_name=task.candidate.name,
        baseline_name=baseline_name,
        **answer,
    )
    session.add(gate)
    await session.flush()
    await session.refresh(gate)
    data = {"gate_id": str(gate.id), "verdict": gate.verdict}
    names = {"candidate": gate.candidate_name, "baseline": gate.baseline_name}
    events.append(session, "gate.decided", {**data, **names})
    return gate


async def get(session: AsyncSession, gate: str) -> Gate:
    """A gate by id. Raises `NotFound`."""
    gate_id = parse_id(gate)
    found = await session.scalar(select(Gate).where(Gate.id == gate_id)) if gate_id else None
    if found is None:
        raise NotFound.named("gate", gate)
    return found


async def page(
    session: AsyncSession, *, verdict: str | None = None, limit: int = 100, cursor: str | None = None
) -> tuple[Sequence[Gate], str | None]:
    """Gates, newest first, and the cursor of the next page."""
    query = select(Gate)
    if verdict is not None:
        query = query.where(Gate.verdict == verdict)
    return await fetch_page(session, query, Sort(Gate.created_at), Gate.id, limit, cursor)


def to_dict(gate: Gate) -> dict[str, Any]:
    """The decision as the API shows it."""
    names = ("id", "candidate_name", "baseline_name", "candidate_forecast", "baseline_forecast", "created_at")
    return {**gate.decision, **{name: getattr(gate, name) for name in names}}
