"""Tuning: the fastest algorithm and tile for each layer on one device, measured there, kept in a database."""

from __future__ import annotations

from .candidates import Trial, applicable, candidates, default_choice, distinct, layers, steps, trial
from .database import Database, Found, device_key, read
from .layers import Layer
from .strategies import STRATEGIES, Budgeted, Exhaustive, Halving, Measure, Strategy
from .trials import Ran, RunTrial, TimeIsOver, TrialFailed
from .tune import Progress, tune

__all__ = [
    "STRATEGIES", "Budgeted", "Database", "Exhaustive", "Found", "Halving", "Layer", "Measure", "Progress", "Ran",
    "RunTrial", "Strategy", "TimeIsOver", "Trial", "TrialFailed", "applicable", "candidates", "default_choice",
    "device_key", "distinct", "layers", "read", "steps", "trial", "tune",
]  # fmt: skip
