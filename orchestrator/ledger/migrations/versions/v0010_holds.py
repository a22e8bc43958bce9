"""Keep which devices a person holds."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "10"
down_revision = "9"


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "holds",
        sa.Column("serial", sa.String(200), primary_key=True),
        sa.Column("who", sa.String(100), nullable=False),
        sa.Column("since", sa.Float, nullable=False),
        sa.Column("until", sa.Float),
        sa.Column("note", sa.Text, nullable=False),
    )
    op.execute("UPDATE counters SET value = 10 WHERE name = 'schema'")
