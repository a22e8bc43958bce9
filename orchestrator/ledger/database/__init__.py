"""The database under the ledger: SQLite (one host) or PostgreSQL, opened and checked, and how it is asked."""

from .counters import JUMP, count_up, jump
from .statements import AT_ONCE, execute_many, padded, parts
from .transactions import Database, Transaction, reads, writes
