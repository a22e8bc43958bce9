"""From the table of requests to figures with their intervals."""

from __future__ import annotations

from .figures import ClassFigures, Figure, Quantiles, Totals
from .measure import Measured, measure
from .spanning import spanning
from .warm_up import cut_of, mser5

__all__ = ["ClassFigures", "Figure", "Measured", "Quantiles", "Totals", "cut_of", "measure", "mser5", "spanning"]
