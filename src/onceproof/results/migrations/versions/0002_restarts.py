"""The release on which a cell's application is restarted."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add the column; cells without a restart have null."""
    with op.batch_alter_table("cells") as cells:
        cells.add_column(sa.Column("restart_on", sa.String(), nullable=True))
