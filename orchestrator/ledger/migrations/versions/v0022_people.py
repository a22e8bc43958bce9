"""People, their tokens and projects; answers that are given once; from where an act came, if it was refused."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "22"
down_revision = "21"


def upgrade() -> None:
    """Every experiment that was there is of the project `common`."""
    op.add_column("experiments", sa.Column("project", sa.String(60), nullable=False, server_default="common"))
    op.add_column("audit", sa.Column("origin", sa.String(100), nullable=False, server_default=""))
    op.add_column("audit", sa.Column("refused", sa.Boolean, nullable=False, server_default=sa.false()))
    op.create_table(
        "people",
        sa.Column("name", sa.String(60), primary_key=True),
        sa.Column("kind", sa.String(12), nullable=False),
        sa.Column("role", sa.String(12), nullable=False),
        sa.Column("since", sa.Float, nullable=False),
        sa.Column("ended_at", sa.Float),
    )
    op.create_table(
        "projects",
        sa.Column("name", sa.String(60), primary_key=True),
        sa.Column("since", sa.Float, nullable=False),
        sa.Column("note", sa.Text, nullable=False),
    )
    op.create_table(
        "members",
        sa.Column("project", sa.String(60), primary_key=True),
        sa.Column("person", sa.String(60), sa.ForeignKey("people.name"), primary_key=True),
        sa.Column("role", sa.String(12), nullable=False),
    )
    op.create_table(
        "tokens",
        sa.Column("id", sa.String(16), primary_key=True),
        sa.Column("sha256", sa.String(64), nullable=False, unique=True),
        sa.Column("person", sa.String(60), sa.ForeignKey("people.name"), nullable=False),
        sa.Column("most", sa.String(12), nullable=False),
        sa.Column("project", sa.String(60), nullable=False),
        sa.Column("note", sa.Text, nullable=False),
        sa.Column("made_at", sa.Float, nullable=False),
        sa.Column("ends_at", sa.Float),
        sa.Column("revoked_at", sa.Float),
        sa.Column("used_at", sa.Float),
    )
    op.create_table(
        "answers",
        sa.Column("person", sa.String(100), primary_key=True),
        sa.Column("key", sa.String(200), primary_key=True),
        sa.Column("request_sha256", sa.String(64), nullable=False),
        sa.Column("answer", sa.Text, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
    )
    op.execute("UPDATE counters SET value = 22 WHERE name = 'schema'")
