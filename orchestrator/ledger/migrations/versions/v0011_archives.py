"""Keep the hashes of archives, and which of them holds a record that was pruned."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "11"
down_revision = "10"


def upgrade() -> None:
    """There is no archive yet."""
    op.create_table(
        "archives",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("file", sa.Text, nullable=False),
        sa.Column("made_at", sa.Float, nullable=False),
    )
    op.execute("ALTER TABLE records ADD COLUMN archive_id INTEGER REFERENCES archives (id)")
    op.execute("UPDATE counters SET value = 11 WHERE name = 'schema'")
