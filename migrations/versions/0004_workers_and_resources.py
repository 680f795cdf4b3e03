"""workers and resources

Revision ID: 0004
Revises: 0003
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_OLD_STATES = ("queued", "starting", "running", "finished", "failed", "cancelled")
_NEW_STATES = ("queued", "starting", "running", "finished", "stopped", "failed", "cancelled")


def _states(states: tuple[str, ...]) -> None:
    """What a job's state may be."""
    op.drop_constraint(op.f("ck_jobs_state"), "jobs", type_="check")
    op.create_check_constraint(op.f("ck_jobs_state"), "jobs", f"state IN {states}")


def upgrade() -> None:
    op.create_table(
        "workers",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("hostname", sa.String(), nullable=False),
        sa.Column("devices", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("cpus", sa.Integer(), nullable=False),
        sa.Column("memory_gib", sa.Double(), nullable=False),
        sa.Column("slots", sa.Integer(), nullable=False),
        sa.Column("versions", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("labels", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("queues", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("state", sa.String(), server_default="starting", nullable=False),
        sa.Column("drain_requested", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("last_heartbeat_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("n_taken", sa.Integer(), server_default="0", nullable=False),
        sa.Column("last_taken_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("free_since", sa.DateTime(timezone=True), nullable=True),
        sa.Column("gone_because", sa.String(), nullable=True),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint(
            "(gone_because IS NOT NULL) = (state = 'gone')", name=op.f("ck_workers_gone_because")
        ),
        sa.CheckConstraint(
            "state IN ('starting', 'idle', 'busy', 'draining', 'gone')", name=op.f("ck_workers_state")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_workers")),
    )
    op.create_index(op.f("ix_workers_created_at_id"), "workers", ["created_at", "id"], unique=False)
    op.create_index(
        "uq_workers_name_present",
        "workers",
        ["name"],
        unique=True,
        postgresql_where=sa.text("state <> 'gone'"),
    )
    op.add_column("jobs", sa.Column("queue", sa.String(), server_default="cpu", nullable=False))
    op.add_column(
        "jobs",
        sa.Column("resources", postgresql.JSONB(astext_type=sa.Text()), server_default="{}", nullable=False),
    )
    op.add_column("jobs", sa.Column("max_hours", sa.Double(), nullable=True))
    op.add_column("jobs", sa.Column("max_gpu_hours", sa.Double(), nullable=True))
    op.add_column(
        "jobs",
        sa.Column("queued_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
    )
    op.add_column("jobs", sa.Column("worker_id", sa.Uuid(), nullable=True))
    op.add_column(
        "jobs",
        sa.Column("devices", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
    )
    op.add_column("jobs", sa.Column("held_since", sa.DateTime(timezone=True), nullable=True))
    op.add_column("jobs", sa.Column("used_hours", sa.Double(), server_default="0", nullable=False))
    op.add_column("jobs", sa.Column("stop_reason", sa.String(), nullable=True))
    op.add_column("jobs", sa.Column("kind", sa.String(), server_default="recipe", nullable=False))
    op.create_check_constraint(op.f("ck_jobs_kind"), "jobs", "kind IN ('recipe', 'command')")
    op.execute("UPDATE jobs SET queued_at = created_at")
    _states(_NEW_STATES)
    op.create_index(
        "ix_jobs_worker_held",
        "jobs",
        ["worker_id"],
        unique=False,
        postgresql_where=sa.text("lease_expires_at IS NOT NULL"),
    )
    op.create_foreign_key(
        op.f("fk_jobs_worker_id_workers"), "jobs", "workers", ["worker_id"], ["id"], ondelete="SET NULL"
    )
    op.add_column("outbox", sa.Column("queue", sa.String(), server_default="cpu", nullable=False))


def downgrade() -> None:
    # The older code does not know stopped jobs; of its states this is the nearest to what happened.
    op.execute(
        "UPDATE jobs SET state = 'cancelled', error = 'stopped: ' || stop_reason WHERE state = 'stopped'"
    )
    open_command = "kind = 'command' AND state IN ('queued', 'starting', 'running')"
    op.execute(f"UPDATE jobs SET state = 'cancelled', lease_expires_at = NULL WHERE {open_command}")
    _states(_OLD_STATES)
    op.drop_column("jobs", "kind")
    op.drop_column("outbox", "queue")
    op.drop_constraint(op.f("fk_jobs_worker_id_workers"), "jobs", type_="foreignkey")
    op.drop_index(
        "ix_jobs_worker_held", table_name="jobs", postgresql_where=sa.text("lease_expires_at IS NOT NULL")
    )
    op.drop_column("jobs", "stop_reason")
    op.drop_column("jobs", "used_hours")
    op.drop_column("jobs", "held_since")
    op.drop_column("jobs", "devices")
    op.drop_column("jobs", "worker_id")
    op.drop_column("jobs", "queued_at")
    op.drop_column("jobs", "max_gpu_hours")
    op.drop_column("jobs", "max_hours")
    op.drop_column("jobs", "resources")
    op.drop_column("jobs", "queue")
    op.drop_index(
        "uq_workers_name_present", table_name="workers", postgresql_where=sa.text("state <> 'gone'")
    )
    op.drop_index(op.f("ix_workers_created_at_id"), table_name="workers")
    op.drop_table("workers")
