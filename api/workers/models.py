from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, Index, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from api.database import Base, HasId

WORKER_STATES = ("starting", "idle", "busy", "draining", "gone")


class Worker(HasId, Base):
    """One start of a worker process on a host. A worker that starts again under its name is a new row.

    All times are the database's. What it holds now is not here but in the jobs that name it.
    """

    __tablename__ = "workers"
    __table_args__ = (
        CheckConstraint(f"state IN {WORKER_STATES}", name="state"),
        CheckConstraint("(gone_because IS NOT NULL) = (state = 'gone')", name="gone_because"),
        Index(None, "created_at", "id"),
        Index("uq_workers_name_present", "name", unique=True, postgresql_where=text("state <> 'gone'")),
    )

    name: Mapped[str]
    hostname: Mapped[str]
    #: `{"uuid", "name", "memory_gib"}` of each GPU that it offers.
    devices: Mapped[list[dict[str, Any]]] = mapped_column(JSONB)
    cpus: Mapped[int]
    memory_gib: Mapped[float]
    #: Jobs that it runs at once.
    slots: Mapped[int]
    versions: Mapped[dict[str, str]] = mapped_column(JSONB)
    labels: Mapped[dict[str, str]] = mapped_column(JSONB)
    queues: Mapped[list[str]] = mapped_column(JSONB)
    state: Mapped[str] = mapped_column(server_default="starting")
    drain_requested: Mapped[bool] = mapped_column(server_default="false")
    last_heartbeat_at: Mapped[datetime]
    #: Messages taken from the queue since its start, and when that count last grew.
    n_taken: Mapped[int] = mapped_column(server_default="0")
    last_taken_at: Mapped[datetime | None]
    #: Since when a slot has been free and nothing taken; null while it takes no jobs.
    free_since: Mapped[datetime | None]
    gone_because: Mapped[str | None]

    @property
    def own_queue(self) -> str:
        """A queue that only this worker reads: for a wake-up that another one could not use."""
        return f"worker.{self.name}"
