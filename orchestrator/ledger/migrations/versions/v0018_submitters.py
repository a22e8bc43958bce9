"""Keep who submitted an experiment, and which holds let not even their holder's experiments through."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "18"
down_revision = "17"


def upgrade() -> None:
    """Add the columns."""
    op.add_column("experiments", sa.Column("submitted_by", sa.String(100), nullable=False, server_default=""))
    op.add_column("holds", sa.Column("alone", sa.Boolean, nullable=False, server_default=sa.false()))
    op.execute("UPDATE counters SET value = 18 WHERE name = 'schema'")
