"""Words of people on devices, and the history of what devices were."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "26"
down_revision = "25"


def upgrade() -> None:
    """Nothing was said of any device."""
    op.create_table(
        "device_notes",
        sa.Column("serial", sa.String(200), primary_key=True),
        sa.Column("labels", sa.Text, nullable=False),
        sa.Column("note", sa.Text, nullable=False),
        sa.Column("owner", sa.String(100), nullable=False),
    )
    op.create_table(
        "device_history",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("serial", sa.String(200), nullable=False),
        sa.Column("host", sa.String(200), nullable=False),
        sa.Column("seen_at", sa.Float, nullable=False),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("build", sa.Text, nullable=False),
        sa.Column("drivers", sa.Text, nullable=False),
        sa.Column("battery_cycles", sa.Integer),
        sa.Column("battery_health", sa.String(40), nullable=False),
    )
    op.create_index("device_history_by_device", "device_history", ["serial", "id"])
    op.execute("UPDATE counters SET value = 26 WHERE name = 'schema'")
