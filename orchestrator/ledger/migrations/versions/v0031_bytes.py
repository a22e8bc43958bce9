"""The bytes of raw records: an index has them, so that a project's are added up without the records."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "31"
down_revision = "30"


def upgrade() -> None:
    """The database itself computes them, also of what is there."""
    op.add_column("records", sa.Column("bytes", sa.Integer, sa.Computed("length(body)")))
    op.drop_index("records_by_experiment", "records")
    op.create_index("records_by_experiment", "records", ["experiment_id", "started_at", "bytes"])
    op.execute("UPDATE counters SET value = 31 WHERE name = 'schema'")
