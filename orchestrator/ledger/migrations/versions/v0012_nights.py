"""Keep nights, and suites that run by their schedule."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "12"
down_revision = "11"


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "nights",
        sa.Column("id", sa.String(120), primary_key=True),
        sa.Column("suite", sa.String(60), nullable=False),
        sa.Column("due_at", sa.Float, nullable=False),
        sa.Column("over", sa.Boolean, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )
    op.create_index("nights_by_suite", "nights", ["suite", "due_at"])
    op.create_table(
        "schedules",
        sa.Column("suite", sa.String(60), primary_key=True),
        sa.Column("file", sa.Text, nullable=False),
        sa.Column("cron", sa.String(100), nullable=False),
        sa.Column("since", sa.Float, nullable=False),
    )
    op.execute("UPDATE counters SET value = 12 WHERE name = 'schema'")
