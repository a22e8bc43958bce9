"""Find the best value of an axis in every group: the least mean, its margin, and whether the data resolve it."""

from __future__ import annotations

from .choice import Best, ValueMedian, choose
from .measured import Measured, Value, measured_layers, measured_runs
from .to_choices import to_choices

__all__ = ["Best", "Measured", "Value", "ValueMedian", "choose", "measured_layers", "measured_runs", "to_choices"]
