"""Have comparisons know how certain a block's energy is, and that its load was too short."""

from __future__ import annotations

from alembic import op

revision = "20"
down_revision = "19"


def upgrade() -> None:
    """Rows are read by their bodies until `farm ledger recompute --all` fills the column again."""
    op.execute("UPDATE figures SET brief = NULL")
    op.execute("UPDATE counters SET value = 20 WHERE name = 'schema'")
