from __future__ import annotations

import uuid
from datetime import datetime

from sqlalchemy import BigInteger, ForeignKey, Identity, Index, SmallInteger, func
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.orm import Mapped, mapped_column

from api.database import Base


class EvaluationFields:
    """What was measured at one checkpoint on one benchmark."""

    attempt: Mapped[int]
    #: Amounts by unit, such as `{"gpu_hours": 1.2, "tokens": 1e6}`.
    compute: Mapped[dict[str, float]] = mapped_column(JSONB)
    pass_rate: Mapped[float]
    n_prompts: Mapped[int | None] = mapped_column(BigInteger)
    n_samples: Mapped[int | None] = mapped_column(BigInteger)
    #: Passes of each prompt, in the benchmark's order.
    solved: Mapped[list[int] | None] = mapped_column(ARRAY(SmallInteger))
    truncated: Mapped[float | None]
    measured_at: Mapped[datetime | None]
    received_at: Mapped[datetime] = mapped_column(server_default=func.clock_timestamp())


class Evaluation(EvaluationFields, Base):
    """The value that counts for (run, benchmark, step): the one of the highest attempt."""

    __tablename__ = "evaluations"

    run_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("runs.id"), primary_key=True)
    benchmark: Mapped[str] = mapped_column(primary_key=True)
    step: Mapped[int] = mapped_column(BigInteger, primary_key=True)


class SupersededEvaluation(EvaluationFields, Base):
    """A value that a higher attempt replaced. Kept for ever."""

    __tablename__ = "superseded_evaluations"
    __table_args__ = (Index(None, "run_id", "benchmark", "step"),)

    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    run_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("runs.id"))
    benchmark: Mapped[str]
    step: Mapped[int] = mapped_column(BigInteger)
    superseded_at: Mapped[datetime] = mapped_column(server_default=func.clock_timestamp())
