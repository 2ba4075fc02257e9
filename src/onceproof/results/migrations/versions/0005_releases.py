"""The releases that were looked at."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "releases",
        sa.Column("release", sa.String(), primary_key=True),
        sa.Column("first_seen", sa.DateTime(), nullable=False),
        sa.Column("triggered", sa.String(), nullable=True),
        sa.Column("incomplete", sa.String(), nullable=True),
    )
