"""Nightly comparisons: a suite says what is compared, a night is what came out.

suite file -> `Suite` (`suite.py`) -> `Night` (`night.py`), which the ledger keeps and every step brings forward.
"""

from __future__ import annotations

from .night import Missing, Night, NightRow, Told, Wave
from .suite import Suite, load

__all__ = ["Missing", "Night", "NightRow", "Suite", "Told", "Wave", "load"]
