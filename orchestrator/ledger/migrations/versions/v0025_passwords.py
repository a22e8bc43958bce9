"""Passwords of people, what each token is for, links by which anybody reads a report, webhooks."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "25"
down_revision = "24"


def upgrade() -> None:
    """Every token that was there is for the API."""
    op.add_column("people", sa.Column("password", sa.Text, nullable=False, server_default=""))
    op.add_column("tokens", sa.Column("use", sa.String(12), nullable=False, server_default="api"))
    op.create_table(
        "links",
        sa.Column("id", sa.String(16), primary_key=True),
        sa.Column("sha256", sa.String(64), nullable=False, unique=True),
        sa.Column("target", sa.String(100), nullable=False),
        sa.Column("project", sa.String(60), nullable=False),
        sa.Column("who", sa.String(100), nullable=False),
        sa.Column("note", sa.Text, nullable=False),
        sa.Column("made_at", sa.Float, nullable=False),
        sa.Column("ends_at", sa.Float, nullable=False),
        sa.Column("revoked_at", sa.Float),
        sa.Column("used_at", sa.Float),
    )
    op.create_table(
        "webhooks",
        sa.Column("id", sa.String(16), primary_key=True),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("project", sa.String(60), nullable=False),
        sa.Column("who", sa.String(100), nullable=False),
        sa.Column("made_at", sa.Float, nullable=False),
        sa.Column("ended_at", sa.Float),
        sa.Column("after", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
    )
    op.create_table(
        "deliveries",
        sa.Column("webhook", sa.String(16), sa.ForeignKey("webhooks.id"), primary_key=True),
        sa.Column("event", sa.String(140), primary_key=True),
        sa.Column("tries", sa.Integer, nullable=False),
        sa.Column("tried_at", sa.Float),
        sa.Column("next_at", sa.Float),
        sa.Column("error", sa.Text, nullable=False),
    )
    op.execute("UPDATE counters SET value = 25 WHERE name = 'schema'")
