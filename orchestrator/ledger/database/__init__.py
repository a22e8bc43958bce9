"""The database under the ledger: SQLite (one host) or PostgreSQL, opened and checked, and how it is asked."""

from __future__ import annotations

from .counters import JUMP, count_up, jump
from .statements import AT_ONCE, execute_many, padded, parts
from .transactions import Database, Transaction

__all__ = ["AT_ONCE", "JUMP", "Database", "Transaction", "count_up", "execute_many", "jump", "padded", "parts"]
