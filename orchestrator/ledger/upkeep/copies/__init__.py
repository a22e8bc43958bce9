"""Copy a ledger at work into a file, and put it back from one."""

from __future__ import annotations

from orchestrator.ledger.database import JUMP

from .backup import Copy, backup
from .restore import Restored, restore

__all__ = ["JUMP", "Copy", "Restored", "backup", "restore"]
