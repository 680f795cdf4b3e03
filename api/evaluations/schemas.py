from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field, FiniteFloat

from api.fields import ComputeUnit, Count, In, Label, Moment, Out, PassRate

MAX_BATCH = 1000

Amount = Annotated[FiniteFloat, Field(ge=0, lt=1e300)]


class EvaluationIn(In):
    """One checkpoint's held-out score. `compute` must hold the run's unit, and may hold others.

    `benchmark` defaults to the run's. `solved` gives the passes of each prompt, `truncated` the share
    of completions that were cut off.
    """

    benchmark: Label | None = None
    step: Count
    compute: Annotated[dict[ComputeUnit, Amount], Field(min_length=1)]
    pass_rate: PassRate
    n_prompts: Annotated[Count, Field(ge=1)] | None = None
    n_samples: Annotated[Count, Field(ge=1)] | None = None
    solved: Annotated[list[Annotated[int, Field(ge=0, lt=2**15)]], Field(max_length=100_000)] | None = None
    truncated: Annotated[FiniteFloat, Field(ge=0, le=1)] | None = None
    measured_at: Moment | None = None


class EvaluationBatch(In):
    """Up to 1,000 evaluations, stored together or not at all.

    A runner adds its `attempt`, `job_id` and `lease_token`; an older attempt's batch is refused.
    """

    evaluations: Annotated[list[EvaluationIn], Field(min_length=1, max_length=MAX_BATCH)]
    attempt: Annotated[int, Field(ge=1, lt=2**31)] = 1
    job_id: UUID | None = None
    lease_token: UUID | None = None


Status = Literal["created", "duplicate", "superseded", "rejected"]


class ItemResult(Out):
    """What became of one item; `reason` only with `rejected`."""

    index: int
    status: Status
    reason: str | None = None


class BatchResult(Out):
    results: list[ItemResult]
    created: int
    duplicates: int
    superseded: int


class EvaluationRead(Out):
    step: int
    attempt: int
    benchmark: str
    compute: dict[str, float]
    pass_rate: float
    n_prompts: int | None
    n_samples: int | None
    truncated: float | None
    measured_at: datetime | None
    received_at: datetime
