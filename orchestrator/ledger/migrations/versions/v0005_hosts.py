"""Keep what people say of hosts."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "5"
down_revision = "4"


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "hosts",
        sa.Column("name", sa.String(200), primary_key=True),
        sa.Column("state", sa.String(12), nullable=False),
        sa.Column("since", sa.Float, nullable=False),
    )
    op.execute("UPDATE counters SET value = 5 WHERE name = 'schema'")
