"""Keep the figures of each record beside it. Those of older records are made when they are first asked for."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "6"
down_revision = "5"


def upgrade() -> None:
    """Make the table, empty."""
    op.create_table(
        "figures",
        sa.Column("job_id", sa.String(32), sa.ForeignKey("jobs.id"), primary_key=True),
        sa.Column("attempt", sa.Integer, primary_key=True),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("experiment_id", sa.String(100), sa.ForeignKey("experiments.id"), nullable=False),
        sa.Column("cell_id", sa.String(32), nullable=False),
        sa.Column("serial", sa.String(200), nullable=False),
        sa.Column("source", sa.String(12), nullable=False),
        sa.Column("outcome", sa.String(12), nullable=False),
        sa.Column("started_at", sa.Float, nullable=False),
        sa.Column("kept_at", sa.Float, nullable=False),
        sa.Column("median_ms", sa.Float),
        sa.Column("error", sa.Text, nullable=False),
        sa.Column("body", sa.LargeBinary),
        sa.Column("per_layer", sa.LargeBinary),
        sa.Column("predictions", sa.LargeBinary),
    )
    op.create_index("figures_by_result", "figures", ["experiment_id", "serial", "cell_id", "started_at"])
    op.execute("UPDATE counters SET value = 6 WHERE name = 'schema'")
