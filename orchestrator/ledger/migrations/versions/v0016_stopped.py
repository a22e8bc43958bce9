"""Keep why a strategy ended without what it was asked for."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "16"
down_revision = "15"


def upgrade() -> None:
    """Add the column."""
    op.add_column("lanes", sa.Column("stopped", sa.Text, nullable=False, server_default=""))
    op.execute("UPDATE counters SET value = 16 WHERE name = 'schema'")
