"""Keep who has acted on the farm, by which door."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "21"
down_revision = "20"


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "audit",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("who", sa.String(100), nullable=False),
        sa.Column("door", sa.String(12), nullable=False),
        sa.Column("act", sa.String(40), nullable=False),
        sa.Column("target", sa.Text, nullable=False),
        sa.Column("said", sa.Text, nullable=False),
    )
    op.execute("UPDATE counters SET value = 21 WHERE name = 'schema'")
