"""Carry an experiment to another lab in one file: all that was asked for and recorded, with its report."""

from __future__ import annotations

from orchestrator.ledger.incoming.imports import Last

from .read import Brought, Keep, take_in
from .write import write

__all__ = ["Brought", "Keep", "Last", "take_in", "write"]
