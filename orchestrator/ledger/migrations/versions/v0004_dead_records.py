"""Keep the records that could not be stored."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "4"
down_revision = "3"


def upgrade() -> None:
    """Make the table, unless a build between the versions has made it."""
    if not sa.inspect(op.get_bind()).has_table("dead_records"):
        op.create_table(
            "dead_records",
            sa.Column("id", sa.String(16), primary_key=True),
            sa.Column("body", sa.LargeBinary, nullable=False),
            sa.Column("reason", sa.Text, nullable=False),
            sa.Column("host", sa.String(200), nullable=False),
            sa.Column("name", sa.String(200), nullable=False),
            sa.Column("set_aside_at", sa.Float, nullable=False),
        )
    op.execute("UPDATE counters SET value = 4 WHERE name = 'schema'")
