"""Keep how many attempts and records are not in the tables though they count, or are in them though they do not."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "17"
down_revision = "16"


def upgrade() -> None:
    """Make the table of counts; what was deleted before is not known."""
    op.create_table(
        "counted",
        sa.Column("what", sa.String(10), primary_key=True),
        sa.Column("outcome", sa.String(12), primary_key=True),
        sa.Column("word", sa.String(40), primary_key=True),
        sa.Column("beside", sa.Integer, nullable=False),
    )
    op.execute("UPDATE counters SET value = 17 WHERE name = 'schema'")
