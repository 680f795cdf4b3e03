"""Stores batches of evaluations: idempotent, in any order, all of a batch or nothing.

A value is known by (run, benchmark, step) and the attempt that measured it. The same value again is a
duplicate; a higher attempt supersedes and the old value is kept; anything else is a conflict. Batches of
one run take turns on the run's row, so two of them can neither dead-lock nor miss each other.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import func, insert, select, tuple_, update
from sqlalchemy.ext.asyncio import AsyncSession

from api.errors import Conflict, Invalid
from api.evaluations.models import Evaluation, EvaluationFields, SupersededEvaluation
from api.evaluations.schemas import BatchResult, EvaluationBatch, EvaluationIn, ItemResult
from api.events import service as events
from api.jobs import fencing
from api.registry.due import mark_due
from api.runs.models import Run

Key = tuple[str, int]
#: What makes two measurements the same; clocks do not count, since an import has none.
_VALUES = ("compute", "pass_rate", "n_prompts", "n_samples", "solved", "truncated")
_COLUMNS = tuple(name for name in EvaluationFields.__annotations__ if name != "received_at")


@dataclass
class Verdicts:
    """What is to be done with a batch."""

    results: list[ItemResult] = field(default_factory=list)
    new: dict[Key, dict[str, Any]] = field(default_factory=dict)
    replaced: dict[Key, dict[str, Any]] = field(default_factory=dict)

    def counts(self) -> Counter[str]:
        return Counter(result.status for result in self.results)


async def ingest(session: AsyncSession, run: Run, batch: EvaluationBatch) -> BatchResult:
    """Stores a batch. Raises `Conflict` with one result an item when any is refused, or when fenced."""
    items = [_row(run, batch.attempt, i, item) for i, item in enumerate(batch.evaluations)]
    await fencing.check_attempt(session, run.id, batch.attempt, batch.job_id, batch.lease_token)
    await session.execute(select(Run.id).where(Run.id == run.id).with_for_update(key_share=True))
    verdicts = judge(items, await _stored(session, run.id, items))
    counts = verdicts.counts()
    if counts["rejected"]:
        raise _refusal(verdicts.results)
    if verdicts.new or verdicts.replaced:
        await _store(session, run, verdicts)
    return BatchResult(
        results=verdicts.results,
        created=counts["created"],
        duplicates=counts["duplicate"],
        superseded=counts["superseded"],
    )


def _row(run: Run, attempt: int, index: int, item: EvaluationIn) -> dict[str, Any]:
    if run.compute_unit not in item.compute:
        raise Invalid.field(
            f"evaluations.{index}.compute", f"must hold {run.compute_unit}, the unit of run {run.name!r}"
        )
    row = {"run_id": run.id, "attempt": attempt, **item.model_dump()}
    return {**row, "benchmark": item.benchmark or run.benchmark}


def judge(items: Sequence[dict[str, Any]], stored: Mapping[Key, dict[str, Any]]) -> Verdicts:
    """Decides on each item, as if they had come one by one."""
    verdicts = Verdicts()
    for index, item in enumerate(items):
        key = (item["benchmark"], item["step"])
        known = verdicts.new.get(key) or verdicts.replaced.get(key) or stored.get(key)
        result = _judge_one(index, item, known)
        verdicts.results.append(result)
        if result.status == "created":
            verdicts.new[key] = item
        elif result.status == "superseded":
            verdicts.replaced[key] = item
    return verdicts


def _judge_one(index: int, item: dict[str, Any], known: dict[str, Any] | None) -> ItemResult:
    if known is None:
        return ItemResult(index=index, status="created")
    if item["attempt"] > known["attempt"]:
        return ItemResult(index=index, status="superseded")
    if item["attempt"] < known["attempt"]:
        reason = f"attempt {known['attempt']} has already measured step {item['step']}"
        return ItemResult(index=index, status="rejected", reason=reason)
    different = [name for name in _VALUES if item[name] != known[name]]
    if not different:
        return ItemResult(index=index, status="duplicate")
    reason = f"step {item['step']} is stored with another {different[0]}; a new value needs a higher attempt"
    return ItemResult(index=index, status="rejected", reason=reason)


def _refusal(results: Sequence[ItemResult]) -> Conflict:
    refused = [result for result in results if result.status == "rejected"]
    return Conflict(
        f"{len(refused)} of {len(results)} evaluations were refused and none stored: {refused[0].reason}",
        code="evaluation_conflict",
        errors=[(f"evaluations.{r.index}", r.reason or "") for r in refused[:100]],
        extra={"results": [result.model_dump(exclude_none=True) for result in results]},
    )


async def _stored(
    session: AsyncSession, run_id: uuid.UUID, items: Sequence[dict[str, Any]]
) -> dict[Key, dict[str, Any]]:
    """Values known for the keys of `items` (and a few more)."""
    query = select(*(getattr(Evaluation, name) for name in ("benchmark", "step", "received_at", *_COLUMNS)))
    query = query.where(
        Evaluation.run_id == run_id,
        Evaluation.benchmark.in_({item["benchmark"] for item in items}),
        Evaluation.step.in_({item["step"] for item in items}),
    )
    return {(row.benchmark, row.step): dict(row._mapping) for row in await session.execute(query)}


async def _store(session: AsyncSession, run: Run, verdicts: Verdicts) -> None:
    if verdicts.replaced:
        await _supersede(session, run.id, verdicts.replaced)
    if verdicts.new:
        await session.execute(insert(Evaluation), list(verdicts.new.values()))
    change = {
        Run.n_evaluations: Run.n_evaluations + len(verdicts.new),
        Run.last_evaluation_at: func.clock_timestamp(),
    }
    await session.execute(update(Run).where(Run.id == run.id).values(change))
    changed_rows = [*verdicts.new.values(), *verdicts.replaced.values()]
    await mark_due(session, run.id, ((row["benchmark"], row["compute"]) for row in changed_rows))
    steps: dict[str, list[int]] = {}
    for benchmark, step in (*verdicts.new, *verdicts.replaced):
        steps.setdefault(benchmark, []).append(step)
    for benchmark, changed in steps.items():
        data = {"run_id": str(run.id), "run": run.name, "benchmark": benchmark, "step": max(changed)}
        events.append(session, "evaluation.created", {**data, "n": len(changed)}, run_id=run.id)


async def _supersede(session: AsyncSession, run_id: uuid.UUID, rows: Mapping[Key, dict[str, Any]]) -> None:
    """Moves the old values into history and puts the new ones in their place."""
    columns = ("run_id", "benchmark", "step", "received_at", *_COLUMNS)
    old = select(*(getattr(Evaluation, name) for name in columns)).where(
        Evaluation.run_id == run_id, tuple_(Evaluation.benchmark, Evaluation.step).in_(rows)
    )
    await session.execute(insert(SupersededEvaluation).from_select(columns, old))
    keys = ("run_id", "benchmark", "step")
    for row in rows.values():
        statement = update(Evaluation).where(*(getattr(Evaluation, key) == row[key] for key in keys))
        values = {name: row[name] for name in _COLUMNS}
        await session.execute(statement.values(**values, received_at=func.clock_timestamp()))


async def page(
    session: AsyncSession,
    run: Run,
    *,
    benchmark: str | None = None,
    after_step: int | None = None,
    after: tuple[int, str] | None = None,
    limit: int = 1000,
) -> Sequence[Evaluation]:
    """At most `limit` evaluations in order of (step, benchmark). Never sampled.

    `after_step` leaves out the steps up to it, `after` the rows up to that (step, benchmark).
    """
    query = select(Evaluation).where(Evaluation.run_id == run.id)
    if benchmark is not None:
        query = query.where(Evaluation.benchmark == benchmark)
    if after_step is not None:
        query = query.where(Evaluation.step > after_step)
    if after is not None:
        query = query.where(tuple_(Evaluation.step, Evaluation.benchmark) > after)
    query = query.order_by(Evaluation.step, Evaluation.benchmark).limit(limit)
    return (await session.scalars(query)).all()


async def all_of(session: AsyncSession, run: Run, benchmark: str) -> Sequence[Evaluation]:
    """Every evaluation of a run on one benchmark, in order of step: what a fit reads."""
    query = select(Evaluation).where(Evaluation.run_id == run.id, Evaluation.benchmark == benchmark)
    return (await session.scalars(query.order_by(Evaluation.step))).all()
