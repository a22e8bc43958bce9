"""Tuning: the fastest algorithm and tile for each convolution on one device, measured there, kept in a database."""

from __future__ import annotations

from .candidates import candidates, distinct, trial
from .database import Database, Found
from .strategies import STRATEGIES, Budgeted, Exhaustive, Halving, Measure, Strategy
from .tune import Progress, tune

__all__ = [
    "STRATEGIES", "Budgeted", "Database", "Exhaustive", "Found", "Halving", "Measure", "Progress", "Strategy",
    "candidates", "distinct", "trial", "tune",
]  # fmt: skip
