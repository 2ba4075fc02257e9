"""By which readers a planted bug was found."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Add the column; older trials were read by one reader only, so none is named."""
    with op.batch_alter_table("planted_trials") as trials:
        trials.add_column(sa.Column("found_by", sa.JSON(), nullable=False, server_default="[]"))
