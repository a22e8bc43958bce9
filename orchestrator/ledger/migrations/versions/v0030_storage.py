"""The storage that a project may take."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "30"
down_revision = "29"


def upgrade() -> None:
    """No project has a limit of its own yet."""
    op.add_column("projects", sa.Column("storage_gib", sa.Float, nullable=False, server_default="0"))
    op.execute("UPDATE counters SET value = 30 WHERE name = 'schema'")
