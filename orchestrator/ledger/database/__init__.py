"""The database under the ledger: SQLite (one host) or PostgreSQL, opened and checked, and how it is asked."""

from .statements import AT_ONCE, JUMP, count_up, execute_many, jump, padded, parts
from .transactions import Database, Transaction, reads, writes
