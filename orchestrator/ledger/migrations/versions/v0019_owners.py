"""Keep which host has which device."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "19"
down_revision = "18"


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "owners",
        sa.Column("serial", sa.String(200), primary_key=True),
        sa.Column("host", sa.String(200), nullable=False),
    )
    op.execute("UPDATE counters SET value = 19 WHERE name = 'schema'")
