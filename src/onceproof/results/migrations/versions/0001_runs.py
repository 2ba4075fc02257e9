"""Runs, cells, trials, anomalies."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "runs",
        sa.Column("id", sa.String(), primary_key=True),
        sa.Column("matrix", sa.String(), nullable=False),
        sa.Column("created", sa.String(), nullable=False),
        sa.Column("stored", sa.DateTime(), nullable=False),
        sa.Column("folder", sa.String(), nullable=False),
    )
    op.create_table(
        "cells",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("run_id", sa.String(), sa.ForeignKey("runs.id", ondelete="CASCADE"), nullable=False, index=True),
        *(sa.Column(name, sa.String(), nullable=False) for name in ("scenario", "variant", "streams", "broker")),
        sa.Column("verdict", sa.String(), nullable=False),
        sa.Column("sentence", sa.String(), nullable=False),
        sa.Column("red", sa.Integer(), nullable=False),
        sa.Column("counted", sa.Integer(), nullable=False),
    )
    op.create_table(
        "trials",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("cell_id", sa.Integer(), sa.ForeignKey("cells.id", ondelete="CASCADE"), nullable=False, index=True),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("seed", sa.Integer(), nullable=False),
        sa.Column("exercised", sa.Boolean(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("error", sa.String()),
        *(sa.Column(name, sa.Integer()) for name in ("records", "keys", "ids")),
        sa.Column("seconds", sa.JSON(), nullable=False),
        sa.Column("attested", sa.JSON(), nullable=False),
    )
    op.create_table(
        "anomalies",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("trial_id", sa.Integer(), sa.ForeignKey("trials.id", ondelete="CASCADE"), nullable=False, index=True),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
    )
