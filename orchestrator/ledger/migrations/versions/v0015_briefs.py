"""Keep what comparisons need of a block beside its figures. Older rows are read by their bodies."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "15"
down_revision = "14"


def upgrade() -> None:
    """`farm ledger recompute` fills the column."""
    op.add_column("figures", sa.Column("brief", sa.Text))
    op.execute("UPDATE counters SET value = 15 WHERE name = 'schema'")
