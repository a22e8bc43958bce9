"""Count losses against hosts too."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "2"
down_revision = "1"


def upgrade() -> None:
    """Make the table, unless a build between the versions has made it."""
    if not sa.inspect(op.get_bind()).has_table("host_health"):
        op.create_table(
            "host_health",
            sa.Column("host", sa.String(200), primary_key=True),
            sa.Column("failures", sa.Integer, nullable=False),
            sa.Column("failed_at", sa.Float, nullable=False),
            sa.Column("quarantined_at", sa.Float),
            sa.Column("reason", sa.Text, nullable=False),
        )
    op.execute("UPDATE counters SET value = 2 WHERE name = 'schema'")
