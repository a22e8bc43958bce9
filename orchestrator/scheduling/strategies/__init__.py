"""Strategies: which jobs of an experiment follow from the results so far. One interface, see `strategy.py`."""

from orchestrator.spec.expansion.run_order import Slot

from .registry import strategy_for
from .strategy import Place, Result, Strategy

__all__ = ["Place", "Result", "Slot", "Strategy", "strategy_for"]
