"""Number the changes of the queue."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "9"
down_revision = "8"


def upgrade() -> None:
    """Nothing has changed yet: a scheduler that starts reads everything."""
    for table in ("lanes", "attempts"):
        op.add_column(table, sa.Column("changed", sa.Integer, nullable=False, server_default="0"))
        op.create_index(f"{table}_by_change", table, ["changed"])
    tried = sa.text("state = 'waiting' AND attempts > 0")
    op.create_index("jobs_tried", "jobs", ["lane_id"], sqlite_where=tried, postgresql_where=tried)
    op.execute("INSERT INTO counters (name, value) VALUES ('change', 0)")
    op.execute("UPDATE counters SET value = 9 WHERE name = 'schema'")
