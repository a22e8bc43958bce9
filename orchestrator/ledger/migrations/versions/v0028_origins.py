"""Origins of experiments that another lab measured; links to two experiments, whose names take more room."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "28"
down_revision = "27"


def upgrade() -> None:
    """Everything that was there is this farm's own."""
    op.add_column("experiments", sa.Column("origin", sa.Text, nullable=False, server_default=""))
    with op.batch_alter_table("links") as links:
        links.alter_column("target", type_=sa.String(210), existing_type=sa.String(100), existing_nullable=False)
    op.execute("UPDATE counters SET value = 28 WHERE name = 'schema'")
