"""Which rates a green excludes; and which kind of machine drove a trial."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Add the columns; the machine of older trials is not known, so they count for nothing."""
    with op.batch_alter_table("cells") as cells:
        cells.add_column(sa.Column("excluded_rate", sa.Double(), nullable=True))
    with op.batch_alter_table("trials") as trials:
        trials.add_column(sa.Column("machine", sa.String(), nullable=True))
    with op.batch_alter_table("planted_trials") as trials:
        trials.add_column(sa.Column("machine", sa.String(), nullable=False, server_default=""))
