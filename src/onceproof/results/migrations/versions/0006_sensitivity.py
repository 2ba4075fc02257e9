"""The results of planted bugs; and of trials, what makes them comparable over nights."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Create the table and add the columns; of older trials it is not known, so they count for nothing."""
    op.create_table(
        "planted_trials",
        sa.Column("run", sa.String(), primary_key=True),
        sa.Column("trial", sa.String(), primary_key=True),
        sa.Column("plant", sa.String(), nullable=False),
        sa.Column("scenario", sa.String(), nullable=False),
        sa.Column("variant", sa.String(), nullable=False),
        sa.Column("streams", sa.String(), nullable=False),
        sa.Column("broker", sa.String(), nullable=False),
        sa.Column("restart_on", sa.String(), nullable=True),
        sa.Column("commit", sa.String(), nullable=False),
        sa.Column("harness", sa.String(), nullable=False),
        sa.Column("seed", sa.Integer(), nullable=False),
        sa.Column("fired", sa.Integer(), nullable=False),
        sa.Column("exercised", sa.Boolean(), nullable=False),
        sa.Column("found", sa.Boolean(), nullable=False),
        sa.Column("anomalies", sa.JSON(), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=True),
        sa.Column("error", sa.String(), nullable=True),
    )
    with op.batch_alter_table("trials") as trials:
        trials.add_column(sa.Column("harness", sa.String(), nullable=True))
        trials.add_column(sa.Column("planned", sa.Boolean(), nullable=False, server_default=sa.false()))
