"""tokens registry and audit

Revision ID: 0002
Revises: 0001
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "audit_log",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("actor", sa.String(), nullable=False),
        sa.Column("action", sa.String(), nullable=False),
        sa.Column("subject", sa.String(), nullable=False),
        sa.Column("details", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("request_id", sa.String(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit_log")),
    )
    op.create_index(op.f("ix_audit_log_created_at"), "audit_log", ["created_at"], unique=False)
    op.create_table(
        "idempotency_keys",
        sa.Column("actor", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("request_sha256", sa.LargeBinary(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("answer", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.PrimaryKeyConstraint("actor", "key", name=op.f("pk_idempotency_keys")),
    )
    op.create_index(op.f("ix_idempotency_keys_created_at"), "idempotency_keys", ["created_at"], unique=False)
    op.create_table(
        "tokens",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("prefix", sa.String(), nullable=False),
        sa.Column("hmac", sa.LargeBinary(), nullable=False),
        sa.Column("scopes", postgresql.ARRAY(sa.TEXT()), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("last_used_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tokens")),
        sa.UniqueConstraint("hmac", name=op.f("uq_tokens_hmac")),
        sa.UniqueConstraint("name", name=op.f("uq_tokens_name")),
    )
    op.create_table(
        "stored_forecasts",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("run_id", sa.Uuid(), nullable=True),
        sa.Column("recipe_id", sa.Uuid(), nullable=True),
        sa.Column("benchmark", sa.String(), nullable=False),
        sa.Column("unit", sa.String(), nullable=False),
        sa.Column("law", sa.String(), nullable=False),
        sa.Column("actor", sa.String(), nullable=False),
        sa.Column("code_version", sa.String(), nullable=False),
        sa.Column("content_sha256", sa.String(), nullable=False),
        sa.Column("answer_sha256", sa.String(), nullable=False),
        sa.Column("task", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("answer", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["recipe_id"], ["recipes.id"], name=op.f("fk_stored_forecasts_recipe_id_recipes")
        ),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_stored_forecasts_run_id_runs")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_stored_forecasts")),
    )
    op.create_index(
        op.f("ix_stored_forecasts_created_at_id"), "stored_forecasts", ["created_at", "id"], unique=False
    )
    op.create_index(op.f("ix_stored_forecasts_run_id"), "stored_forecasts", ["run_id"], unique=False)
    op.create_table(
        "baselines",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("pass_rate", sa.Double(), nullable=True),
        sa.Column("forecast_id", sa.Uuid(), nullable=True),
        sa.Column("reason", sa.String(), nullable=True),
        sa.Column("actor", sa.String(), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint(
            "(pass_rate IS NULL) <> (forecast_id IS NULL)", name=op.f("ck_baselines_one_source")
        ),
        sa.ForeignKeyConstraint(
            ["forecast_id"], ["stored_forecasts.id"], name=op.f("fk_baselines_forecast_id_stored_forecasts")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_baselines")),
        sa.UniqueConstraint("name", name=op.f("uq_baselines_name")),
    )
    op.create_table(
        "forecast_targets",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("forecast_id", sa.Uuid(), nullable=False),
        sa.Column("run_id", sa.Uuid(), nullable=True),
        sa.Column("benchmark", sa.String(), nullable=False),
        sa.Column("unit", sa.String(), nullable=False),
        sa.Column("compute", sa.Double(), nullable=False),
        sa.Column("value", sa.Double(), nullable=False),
        sa.Column("low", sa.Double(), nullable=False),
        sa.Column("high", sa.Double(), nullable=False),
        sa.Column("quantiles", postgresql.ARRAY(sa.DOUBLE_PRECISION()), nullable=False),
        sa.Column("observed_to", sa.Double(), nullable=False),
        sa.Column("retrospective", sa.Boolean(), nullable=False),
        sa.Column("due", sa.Boolean(), nullable=False),
        sa.Column("scored_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("actual", sa.Double(), nullable=True),
        sa.Column("error", sa.Double(), nullable=True),
        sa.Column("inside", sa.Boolean(), nullable=True),
        sa.Column("crps", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(
            ["forecast_id"],
            ["stored_forecasts.id"],
            name=op.f("fk_forecast_targets_forecast_id_stored_forecasts"),
        ),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_forecast_targets_run_id_runs")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_forecast_targets")),
    )
    op.create_index(
        "ix_forecast_targets_due",
        "forecast_targets",
        ["id"],
        unique=False,
        postgresql_where=sa.text("due AND scored_at IS NULL"),
    )
    op.create_index(
        op.f("ix_forecast_targets_forecast_id"), "forecast_targets", ["forecast_id"], unique=False
    )
    op.create_index(
        "ix_forecast_targets_open",
        "forecast_targets",
        ["run_id"],
        unique=False,
        postgresql_where=sa.text("scored_at IS NULL"),
    )


def downgrade() -> None:
    op.drop_index(
        "ix_forecast_targets_open",
        table_name="forecast_targets",
        postgresql_where=sa.text("scored_at IS NULL"),
    )
    op.drop_index(op.f("ix_forecast_targets_forecast_id"), table_name="forecast_targets")
    op.drop_index(
        "ix_forecast_targets_due",
        table_name="forecast_targets",
        postgresql_where=sa.text("due AND scored_at IS NULL"),
    )
    op.drop_table("forecast_targets")
    op.drop_table("baselines")
    op.drop_index(op.f("ix_stored_forecasts_run_id"), table_name="stored_forecasts")
    op.drop_index(op.f("ix_stored_forecasts_created_at_id"), table_name="stored_forecasts")
    op.drop_table("stored_forecasts")
    op.drop_table("tokens")
    op.drop_index(op.f("ix_idempotency_keys_created_at"), table_name="idempotency_keys")
    op.drop_table("idempotency_keys")
    op.drop_index(op.f("ix_audit_log_created_at"), table_name="audit_log")
    op.drop_table("audit_log")
