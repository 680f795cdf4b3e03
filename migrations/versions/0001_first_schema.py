"""first schema

Revision ID: 0001
Revises:
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision: str | None = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "events",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("run_id", sa.Uuid(), nullable=True),
        sa.Column("data", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_events")),
    )
    op.create_index(op.f("ix_events_created_at"), "events", ["created_at"], unique=False)
    op.create_table(
        "gates",
        sa.Column("verdict", sa.String(), nullable=False),
        sa.Column("candidate_name", sa.String(), nullable=False),
        sa.Column("baseline_name", sa.String(), nullable=False),
        sa.Column("decision", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("candidate_forecast", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column(
            "baseline_forecast", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True
        ),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_gates")),
    )
    op.create_index(op.f("ix_gates_created_at_id"), "gates", ["created_at", "id"], unique=False)
    op.create_table(
        "recipes",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("content_hash", sa.String(), nullable=False),
        sa.Column("config", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
        sa.Column("description", sa.String(), nullable=True),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_recipes")),
        sa.UniqueConstraint("name", "content_hash", name=op.f("uq_recipes_name_content_hash")),
        sa.UniqueConstraint("name", "version", name=op.f("uq_recipes_name_version")),
    )
    op.create_table(
        "runs",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("recipe_id", sa.Uuid(), nullable=False),
        sa.Column("benchmark", sa.String(), nullable=False),
        sa.Column("compute_unit", sa.String(), nullable=False),
        sa.Column("model", sa.String(), nullable=True),
        sa.Column("task", sa.String(), nullable=True),
        sa.Column("seed", sa.Integer(), nullable=True),
        sa.Column("source", sa.String(), nullable=True),
        sa.Column("tags", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("n_evaluations", sa.Integer(), server_default="0", nullable=False),
        sa.Column("last_evaluation_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(["recipe_id"], ["recipes.id"], name=op.f("fk_runs_recipe_id_recipes")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_runs")),
        sa.UniqueConstraint("name", name=op.f("uq_runs_name")),
    )
    op.create_index(op.f("ix_runs_created_at_id"), "runs", ["created_at", "id"], unique=False)
    op.create_index(op.f("ix_runs_recipe_id"), "runs", ["recipe_id"], unique=False)
    op.create_table(
        "evaluations",
        sa.Column("run_id", sa.Uuid(), nullable=False),
        sa.Column("benchmark", sa.String(), nullable=False),
        sa.Column("step", sa.BigInteger(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("compute", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("pass_rate", sa.Double(), nullable=False),
        sa.Column("n_prompts", sa.BigInteger(), nullable=True),
        sa.Column("n_samples", sa.BigInteger(), nullable=True),
        sa.Column("solved", postgresql.ARRAY(sa.SmallInteger()), nullable=True),
        sa.Column("truncated", sa.Double(), nullable=True),
        sa.Column("measured_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column(
            "received_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_evaluations_run_id_runs")),
        sa.PrimaryKeyConstraint("run_id", "benchmark", "step", name=op.f("pk_evaluations")),
    )
    op.create_table(
        "jobs",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("run_id", sa.Uuid(), nullable=False),
        sa.Column("recipe_id", sa.Uuid(), nullable=False),
        sa.Column("config", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("state", sa.String(), server_default="queued", nullable=False),
        sa.Column("attempt", sa.Integer(), server_default="1", nullable=False),
        sa.Column("max_attempts", sa.Integer(), nullable=False),
        sa.Column("n_lost", sa.Integer(), server_default="0", nullable=False),
        sa.Column("runner", sa.String(), nullable=True),
        sa.Column("lease_token", sa.Uuid(), nullable=True),
        sa.Column("lease_expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("published_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("progress", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
        sa.Column("exit_code", sa.Integer(), nullable=True),
        sa.Column("error", sa.String(), nullable=True),
        sa.Column("log_tail", sa.String(), nullable=True),
        sa.Column("cancel_requested", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint(
            "(lease_expires_at IS NOT NULL) = (state IN ('starting', 'running'))",
            name=op.f("ck_jobs_lease_while_held"),
        ),
        sa.CheckConstraint(
            "state IN ('queued', 'starting', 'running', 'finished', 'failed', 'cancelled')",
            name=op.f("ck_jobs_state"),
        ),
        sa.ForeignKeyConstraint(["recipe_id"], ["recipes.id"], name=op.f("fk_jobs_recipe_id_recipes")),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_jobs_run_id_runs")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_jobs")),
        sa.UniqueConstraint("run_id", name=op.f("uq_jobs_run_id")),
    )
    op.create_index(op.f("ix_jobs_created_at_id"), "jobs", ["created_at", "id"], unique=False)
    op.create_index(
        op.f("ix_jobs_lease_expires_at"),
        "jobs",
        ["lease_expires_at"],
        unique=False,
        postgresql_where=sa.text("lease_expires_at IS NOT NULL"),
    )
    op.create_index(
        "ix_jobs_queued", "jobs", ["published_at"], unique=False, postgresql_where=sa.text("state = 'queued'")
    )
    op.create_table(
        "superseded_evaluations",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("run_id", sa.Uuid(), nullable=False),
        sa.Column("benchmark", sa.String(), nullable=False),
        sa.Column("step", sa.BigInteger(), nullable=False),
        sa.Column(
            "superseded_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("compute", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("pass_rate", sa.Double(), nullable=False),
        sa.Column("n_prompts", sa.BigInteger(), nullable=True),
        sa.Column("n_samples", sa.BigInteger(), nullable=True),
        sa.Column("solved", postgresql.ARRAY(sa.SmallInteger()), nullable=True),
        sa.Column("truncated", sa.Double(), nullable=True),
        sa.Column("measured_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column(
            "received_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_superseded_evaluations_run_id_runs")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_superseded_evaluations")),
    )
    op.create_index(
        op.f("ix_superseded_evaluations_run_id_benchmark_step"),
        "superseded_evaluations",
        ["run_id", "benchmark", "step"],
        unique=False,
    )
    op.create_table(
        "outbox",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("job_id", sa.Uuid(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("sent_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_outbox_job_id_jobs")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_outbox")),
    )
    op.create_index(
        "ix_outbox_unsent", "outbox", ["id"], unique=False, postgresql_where=sa.text("sent_at IS NULL")
    )


def downgrade() -> None:
    op.drop_index("ix_outbox_unsent", table_name="outbox", postgresql_where=sa.text("sent_at IS NULL"))
    op.drop_table("outbox")
    op.drop_index(
        op.f("ix_superseded_evaluations_run_id_benchmark_step"), table_name="superseded_evaluations"
    )
    op.drop_table("superseded_evaluations")
    op.drop_index("ix_jobs_queued", table_name="jobs", postgresql_where=sa.text("state = 'queued'"))
    op.drop_index(
        op.f("ix_jobs_lease_expires_at"),
        table_name="jobs",
        postgresql_where=sa.text("lease_expires_at IS NOT NULL"),
    )
    op.drop_index(op.f("ix_jobs_created_at_id"), table_name="jobs")
    op.drop_table("jobs")
    op.drop_table("evaluations")
    op.drop_index(op.f("ix_runs_recipe_id"), table_name="runs")
    op.drop_index(op.f("ix_runs_created_at_id"), table_name="runs")
    op.drop_table("runs")
    op.drop_table("recipes")
    op.drop_index(op.f("ix_gates_created_at_id"), table_name="gates")
    op.drop_table("gates")
    op.drop_index(op.f("ix_events_created_at"), table_name="events")
    op.drop_table("events")
