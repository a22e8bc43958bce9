"""The jobs of an experiment in a state, in their order: a page of them is read without the others."""

from __future__ import annotations

from alembic import op

revision = "27"
down_revision = "26"


def upgrade() -> None:
    """The same index, and one column more."""
    op.drop_index("jobs_by_experiment", "jobs")
    op.create_index("jobs_by_experiment", "jobs", ["experiment", "state", "sequence"])
    op.execute("UPDATE counters SET value = 27 WHERE name = 'schema'")
