"""The compared values of the history: the known issues of a cell and the mean seconds of its trials."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add the columns; of older cells the seconds are known, the issues are not."""
    with op.batch_alter_table("cells") as cells:
        cells.add_column(sa.Column("issues", sa.JSON(), nullable=False, server_default="[]"))
        cells.add_column(sa.Column("seconds", sa.Double(), nullable=True))
    trials = sa.table("trials", sa.column("cell_id", sa.Integer()), sa.column("seconds", sa.JSON()))
    cells_ = sa.table("cells", sa.column("id", sa.Integer()), sa.column("seconds", sa.Double()))
    totals: dict[int, list[float]] = {}
    for cell, seconds in op.get_bind().execute(sa.select(trials.c.cell_id, trials.c.seconds)):
        if "total" in seconds:
            totals.setdefault(cell, []).append(seconds["total"])
    for cell, known in totals.items():
        mean = round(sum(known) / len(known), 2)
        op.execute(sa.update(cells_).where(cells_.c.id == cell).values(seconds=mean))
