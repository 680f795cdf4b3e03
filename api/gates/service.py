"""Decides whether a candidate keeps up with a baseline, and keeps the decision with all it was made from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from api.audit import service as audit
from api.baselines import service as baselines
from api.errors import Invalid, NotFound
from api.events import service as events
from api.forecasts import service as forecasts
from api.forecasts.service import Subject
from api.forecasts.worker import ForecastTask, GateTask
from api.gates.models import Gate
from api.gates.schemas import GateRequest
from api.lookup import parse_id
from api.paging import Sort, fetch_page
from api.registry import service as registry
from api.registry.models import StoredForecast


async def prepare(session: AsyncSession, asked: GateRequest) -> GateTask:
    """Reads the points of both sides. Raises `NotFound` or `Invalid`.

    A baseline's name is sought among runs, then recipes, then pinned baselines.
    """
    candidate = await forecasts.subject_named(session, asked.candidate)
    if not isinstance(asked.baseline, str):
        return await _against(session, asked, candidate, float(asked.baseline))
    subject = await forecasts.find_subject(session, asked.baseline)
    if subject is not None:
        axes = forecasts.common_axes([*candidate.runs, *subject.runs], asked)
        tasks = [await forecasts.task_of(session, side, axes, asked) for side in (candidate, subject)]
        return GateTask(tasks[0], tasks[1], asked.margin, asked.confidence)
    pinned = await baselines.find(session, asked.baseline)
    if pinned is None:
        raise NotFound(
            f"no run, recipe or baseline named {asked.baseline!r}; GET /api/v1/baselines lists them"
        )
    if pinned.forecast is None:
        assert pinned.pass_rate is not None
        return await _against(session, asked, candidate, pinned.pass_rate)
    return await _against_stored(session, asked, candidate, pinned.forecast)


async def _against(
    session: AsyncSession,
    asked: GateRequest,
    candidate: Subject,
    baseline: ForecastTask | float,
    **more: int,
) -> GateTask:
    axes = forecasts.common_axes(candidate.runs, asked)
    task = await forecasts.task_of(session, candidate, axes, asked, **more)
    return GateTask(task, baseline, asked.margin, asked.confidence)


async def _against_stored(
    session: AsyncSession, asked: GateRequest, candidate: Subject, stored: StoredForecast
) -> GateTask:
    """Against a pinned forecast, made again from its own points and options."""
    axes = forecasts.common_axes(candidate.runs, asked)
    for field, mine, theirs in (
        ("unit", axes.unit, stored.unit),
        ("benchmark", axes.benchmark, stored.benchmark),
    ):
        if mine != theirs:
            raise Invalid.field(field, f"the baseline has {theirs!r} and the candidate {mine!r}")
    task = registry.task_of(stored)
    # As many draws on both sides, so that they can be compared one by one.
    return await _against(session, asked, candidate, task, replicates=task.options["replicates"])


async def record(session: AsyncSession, asked: GateRequest, task: GateTask, answer: dict[str, Any]) -> Gate:
    """Stores a decision and announces it."""
    baseline_name = (
        f"{asked.baseline:g}" if isinstance(asked.baseline, float) else _name_of(asked.baseline, task)
    )
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
    audit.note(session, "gate.decided", gate.candidate_name, **data, baseline=gate.baseline_name)
    return gate


def _name_of(asked: str, task: GateTask) -> str:
    """A run's or recipe's name even when it was asked for by id; a pinned baseline's as asked."""
    by_id = parse_id(asked) is not None and isinstance(task.baseline, ForecastTask)
    return task.baseline.name if by_id and isinstance(task.baseline, ForecastTask) else asked


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
