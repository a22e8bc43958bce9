"""The tables of release 0.1.0, which `orchestrator/ledger/tables.py` declares and `create` makes: the first version."""

from __future__ import annotations

revision = "21"
down_revision = None


def upgrade() -> None:
    """Nothing: no table is older."""
