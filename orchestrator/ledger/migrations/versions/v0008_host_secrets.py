"""Keep the hashes of the hosts' secrets."""

from __future__ import annotations

from alembic import op

revision = "8"
down_revision = "7"


def upgrade() -> None:
    """No host has one yet."""
    op.execute("ALTER TABLE hosts ADD COLUMN secret_sha256 VARCHAR(64) DEFAULT '' NOT NULL")
    op.execute("UPDATE counters SET value = 8 WHERE name = 'schema'")
