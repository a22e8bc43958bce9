"""The measures of queueing: from the table of requests to figures with their intervals."""

from __future__ import annotations

from .figures import ClassFigures, Figure, Quantiles, Totals
from .leaving_out import interval
from .measure import Measured, measure
from .memory import relaxation_s
from .spanning import spanning
from .steady import short

__all__ = [
    "ClassFigures", "Figure", "Measured", "Quantiles", "Totals", "interval", "measure", "relaxation_s", "short",
    "spanning",
]  # fmt: skip
