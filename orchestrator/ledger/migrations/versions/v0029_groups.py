"""Groups of people; by whom a provider of OpenID Connect knows somebody."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "29"
down_revision = "28"


def upgrade() -> None:
    """Nobody belongs to a group yet, and nobody has logged in by a provider."""
    op.create_table(
        "grouped",
        sa.Column("of_group", sa.String(60), sa.ForeignKey("people.name"), primary_key=True),
        sa.Column("person", sa.String(60), sa.ForeignKey("people.name"), primary_key=True),
    )
    op.add_column("people", sa.Column("subject", sa.Text, nullable=False, server_default=""))
    op.execute("UPDATE counters SET value = 29 WHERE name = 'schema'")
