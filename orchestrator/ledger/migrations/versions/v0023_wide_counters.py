"""Counters, and what they number, get 64 bits on PostgreSQL. SQLite's integers have them already."""

from __future__ import annotations

from alembic import op

revision = "23"
down_revision = "22"

WIDENED = {
    "counters": ("value",),
    "counted": ("beside",),
    "experiments": ("sequence",),
    "templates": ("experiment",),
    "lanes": ("experiment", "changed"),
    "jobs": ("experiment", "token"),
    "attempts": ("token", "changed"),
    "records": ("token",),
}


def upgrade() -> None:
    """Each table is written anew once, whatever columns of it change."""
    if op.get_bind().dialect.name == "postgresql":
        for table, columns in WIDENED.items():
            op.execute(f"ALTER TABLE {table} " + ", ".join(f"ALTER {column} TYPE BIGINT" for column in columns))
    op.execute("UPDATE counters SET value = 23 WHERE name = 'schema'")
