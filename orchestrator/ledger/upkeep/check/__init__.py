"""Check a ledger: the file, every row, and how rows belong together."""

from __future__ import annotations

from .fault import Fault
from .steps import Looked, check

__all__ = ["Fault", "Looked", "check"]
