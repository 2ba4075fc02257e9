"""Which installation has planned a run: two of them may share a database."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Add the column; the installation of older runs is not known."""
    with op.batch_alter_table("runs") as runs:
        runs.add_column(sa.Column("installation", sa.String(), nullable=False, server_default=""))
