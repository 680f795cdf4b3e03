from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, CheckConstraint, ForeignKey, Identity, Index, func, select, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, column_property, mapped_column, relationship

from api.database import Base, CreatedAt, HasId
from api.runs.models import Run

JOB_STATES = ("queued", "starting", "running", "finished", "stopped", "failed", "cancelled")
JOB_KINDS = ("recipe", "command")
ENDED = frozenset({"finished", "stopped", "failed", "cancelled"})
HELD = frozenset({"starting", "running"})


class Job(HasId, Base):
    """A request to run a recipe, or a command of any kind, on a runner. `config` holds the one or the other.

    `attempt` counts the starts that were handed out; each has its own lease token, and writes with
    another one are refused. `n_lost` counts the attempts whose lease ran out.
    """

    __tablename__ = "jobs"
    __table_args__ = (
        CheckConstraint(f"kind IN {JOB_KINDS}", name="kind"),
        CheckConstraint(f"state IN {JOB_STATES}", name="state"),
        CheckConstraint(
            "(lease_expires_at IS NOT NULL) = (state IN ('starting', 'running'))", name="lease_while_held"
        ),
        Index(None, "created_at", "id"),
        Index(None, "lease_expires_at", postgresql_where=text("lease_expires_at IS NOT NULL")),
        Index("ix_jobs_worker_held", "worker_id", postgresql_where=text("lease_expires_at IS NOT NULL")),
        Index("ix_jobs_queued", "published_at", postgresql_where=text("state = 'queued'")),
    )

    name: Mapped[str]
    run_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("runs.id"), unique=True)
    recipe_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("recipes.id"))
    kind: Mapped[str] = mapped_column(server_default="recipe")
    config: Mapped[dict[str, Any]] = mapped_column(JSONB)
    state: Mapped[str] = mapped_column(server_default="queued")
    attempt: Mapped[int] = mapped_column(server_default="1")
    #: The Celery queue that its wake-ups go to: `cpu` or `gpu` unless one was named.
    queue: Mapped[str] = mapped_column(server_default="cpu")
    #: What it asks of a worker: `gpus`, `gpu_memory_gib`, `cpus`, `memory_gib`, `labels`.
    resources: Mapped[dict[str, Any]] = mapped_column(JSONB, server_default="{}")
    #: Most hours that it may be held, all attempts together, and most of that times its GPUs.
    max_hours: Mapped[float | None]
    max_gpu_hours: Mapped[float | None]
    max_attempts: Mapped[int]
    n_lost: Mapped[int] = mapped_column(server_default="0")
    #: Since when the current attempt has waited.
    queued_at: Mapped[datetime] = mapped_column(server_default=func.now())
    runner: Mapped[str | None]
    worker_id: Mapped[uuid.UUID | None] = mapped_column(ForeignKey("workers.id", ondelete="SET NULL"))
    #: UUIDs of the GPUs that the current attempt holds, or the last one held.
    devices: Mapped[list[str] | None] = mapped_column(JSONB(none_as_null=True))
    #: When the current attempt was claimed, and the hours that earlier attempts were held.
    held_since: Mapped[datetime | None]
    used_hours: Mapped[float] = mapped_column(server_default="0")
    lease_token: Mapped[uuid.UUID | None]
    lease_expires_at: Mapped[datetime | None]
    #: When the newest message for this attempt went to the broker; null until then.
    published_at: Mapped[datetime | None]
    #: Messages sent or to be sent for this attempt.
    n_wake_ups: Mapped[int] = mapped_column(server_default="0")
    progress: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    exit_code: Mapped[int | None]
    error: Mapped[str | None]
    #: Why a job in state `stopped` was stopped: the name of the rule that it had set itself.
    stop_reason: Mapped[str | None]
    log_tail: Mapped[str | None]
    cancel_requested: Mapped[bool] = mapped_column(server_default="false")
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]

    run: Mapped[Run] = relationship(lazy="joined", innerjoin=True, foreign_keys=[run_id])

    @property
    def run_name(self) -> str:
        return self.run.name


# Here and not in Run: a run knows nothing of jobs until there are some.
Run.job_id = column_property(
    select(Job.id).where(Job.run_id == Run.id).correlate_except(Job).scalar_subquery()
)


class Outbox(Base):
    """A wake-up that must reach the broker; written in the transaction that makes it true."""

    __tablename__ = "outbox"
    __table_args__ = (Index("ix_outbox_unsent", "id", postgresql_where=text("sent_at IS NULL")),)

    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    job_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("jobs.id"))
    attempt: Mapped[int]
    queue: Mapped[str] = mapped_column(server_default="cpu")
    created_at: Mapped[CreatedAt]
    sent_at: Mapped[datetime | None]
