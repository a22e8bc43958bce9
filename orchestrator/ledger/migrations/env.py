"""Alembic's entry: it runs the scripts on the connection, and in the transaction, that it is given."""

from __future__ import annotations

from alembic import context

from orchestrator.ledger.tables import METADATA

context.configure(connection=context.config.attributes["connection"], target_metadata=METADATA)
with context.begin_transaction():
    context.run_migrations()
