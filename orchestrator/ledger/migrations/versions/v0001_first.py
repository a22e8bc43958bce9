"""Make the tables of version 1."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "1"
down_revision = None


def upgrade() -> None:
    """Make the tables of the first pocketfarm."""
    op.create_table(
        "experiments",
        sa.Column("id", sa.String(100), primary_key=True),
        sa.Column("sequence", sa.Integer, nullable=False, unique=True),
        sa.Column("spec", sa.Text, nullable=False),
        sa.Column("exclusions", sa.Text, nullable=False),
        sa.Column("submitted_at", sa.Float, nullable=False),
        sa.Column("served_at", sa.Float, nullable=False),
    )
    op.create_table(
        "jobs",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("experiment_id", sa.String(100), sa.ForeignKey("experiments.id"), nullable=False),
        sa.Column("experiment_sequence", sa.Integer, nullable=False),
        sa.Column("sequence", sa.Integer, nullable=False),
        sa.Column("cell_id", sa.String(32), nullable=False),
        sa.Column("block", sa.Integer, nullable=False),
        sa.Column("label", sa.Text, nullable=False),
        sa.Column("candidates", sa.Text, nullable=False),
        sa.Column("candidate_count", sa.Integer, nullable=False),
        sa.Column("priority", sa.Integer, nullable=False),
        sa.Column("state", sa.String(12), nullable=False),
        sa.Column("outcome", sa.String(12), nullable=False),
        sa.Column("cause", sa.String(40), nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("failures", sa.Integer, nullable=False),
        sa.Column("token", sa.Integer, nullable=False),
        sa.Column("not_before", sa.Float, nullable=False),
        sa.Column("ended_at", sa.Float),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )
    op.create_index("jobs_by_state", "jobs", ["state", "experiment_sequence", "sequence"])
    in_turn = ["state", "experiment_id", "candidates", "sequence", "candidate_count", "not_before", "id"]
    op.create_index("jobs_in_turn", "jobs", in_turn)
    op.create_index("jobs_by_experiment", "jobs", ["experiment_id", "state"])
    op.create_table(
        "attempts",
        sa.Column("job_id", sa.String(32), sa.ForeignKey("jobs.id"), primary_key=True),
        sa.Column("attempt", sa.Integer, primary_key=True),
        sa.Column("token", sa.Integer, nullable=False, unique=True),
        sa.Column("serial", sa.String(200), nullable=False),
        sa.Column("host", sa.String(200), nullable=False),
        sa.Column("ttl_s", sa.Float, nullable=False),
        sa.Column("started_at", sa.Float, nullable=False),
        sa.Column("ended_at", sa.Float),
        sa.Column("outcome", sa.String(12), nullable=False),
        sa.Column("cause", sa.String(40), nullable=False),
    )
    op.create_index("attempts_by_end", "attempts", ["ended_at"])
    op.create_table(
        "records",
        sa.Column("job_id", sa.String(32), sa.ForeignKey("jobs.id"), primary_key=True),
        sa.Column("attempt", sa.Integer, primary_key=True),
        sa.Column("token", sa.Integer, nullable=False),
        sa.Column("experiment_id", sa.String(100), sa.ForeignKey("experiments.id"), nullable=False),
        sa.Column("cell_id", sa.String(32), nullable=False),
        sa.Column("serial", sa.String(200), nullable=False),
        sa.Column("outcome", sa.String(12), nullable=False),
        sa.Column("cause", sa.String(40), nullable=False),
        sa.Column("source", sa.String(12), nullable=False),
        sa.Column("started_at", sa.Float, nullable=False),
        sa.Column("kept_at", sa.Float, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )
    op.create_index("records_by_experiment", "records", ["experiment_id", "started_at"])
    op.create_index("records_by_device", "records", ["serial", "started_at"])
    op.create_index("records_by_kept_at", "records", ["kept_at"])
    op.create_table(
        "device_health",
        sa.Column("serial", sa.String(200), primary_key=True),
        sa.Column("failures", sa.Integer, nullable=False),
        sa.Column("failed_at", sa.Float, nullable=False),
        sa.Column("quarantined_at", sa.Float),
        sa.Column("reason", sa.Text, nullable=False),
    )
    op.create_table(
        "counters",
        sa.Column("name", sa.String(40), primary_key=True),
        sa.Column("value", sa.Integer, nullable=False),
    )
    counters = sa.table("counters", sa.column("name", sa.String), sa.column("value", sa.Integer))
    op.bulk_insert(
        counters, [{"name": name, "value": value} for name, value in (("schema", 1), ("token", 0), ("experiment", 0))]
    )
