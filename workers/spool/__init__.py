"""Keep records on this host until the ledger has them."""

from .dead import old_dead, remove_dead
from .spool import Spool

__all__ = ["Spool", "old_dead", "remove_dead"]
