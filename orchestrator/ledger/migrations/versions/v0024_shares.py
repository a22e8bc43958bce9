"""Shares and limits of projects, what they used, and holds that begin later or are a project's."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "24"
down_revision = "23"


def upgrade() -> None:
    """Every hold that was there has begun, and is a person's."""
    op.add_column("projects", sa.Column("share", sa.Float, nullable=False, server_default="1"))
    op.add_column("projects", sa.Column("phone_hours", sa.Float, nullable=False, server_default="0"))
    op.add_column("projects", sa.Column("most_waiting", sa.Integer, nullable=False, server_default="0"))
    op.create_table(
        "usage",
        sa.Column("project", sa.String(60), primary_key=True),
        sa.Column("person", sa.String(100), primary_key=True),
        sa.Column("week", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("seconds", sa.Float, nullable=False),
        sa.Column("weighted", sa.Float, nullable=False),
    )
    op.rename_table("holds", "holds_before")
    op.create_table(
        "holds",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("serial", sa.String(200), nullable=False),
        sa.Column("who", sa.String(100), nullable=False),
        sa.Column("project", sa.String(60), nullable=False, server_default=""),
        sa.Column("since", sa.Float, nullable=False),
        sa.Column("begins", sa.Float, nullable=False, server_default="0"),
        sa.Column("until", sa.Float),
        sa.Column("note", sa.Text, nullable=False),
        sa.Column("alone", sa.Boolean, nullable=False, server_default=sa.false()),
    )
    op.execute(
        "INSERT INTO holds (serial, who, since, until, note, alone) "
        "SELECT serial, who, since, until, note, alone FROM holds_before"
    )
    op.drop_table("holds_before")
    op.create_index("holds_by_device", "holds", ["serial"])
    op.execute("UPDATE counters SET value = 24 WHERE name = 'schema'")
