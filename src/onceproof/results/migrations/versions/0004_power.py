"""The worth of a green: the probability that a bug that shows as often as in the controls would have been missed."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Add the column; of older cells it is not known."""
    op.add_column("cells", sa.Column("missed", sa.Double(), nullable=True))
