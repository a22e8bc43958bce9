"""Keep runs of queueing experiments."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "14"
down_revision = "13"


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "queue_runs",
        sa.Column("id", sa.String(120), primary_key=True),
        sa.Column("name", sa.String(60), nullable=False),
        sa.Column("began_at", sa.Float, nullable=False),
        sa.Column("source", sa.String(100), nullable=False),
        sa.Column("requests", sa.Integer, nullable=False),
        sa.Column("summary", sa.LargeBinary, nullable=False),
        sa.Column("about", sa.LargeBinary, nullable=False),
        sa.Column("request_columns", sa.LargeBinary, nullable=False),
        sa.Column("reading_columns", sa.LargeBinary, nullable=False),
    )
    op.create_index("queue_runs_by_time", "queue_runs", ["began_at"])
    op.execute("UPDATE counters SET value = 14 WHERE name = 'schema'")
