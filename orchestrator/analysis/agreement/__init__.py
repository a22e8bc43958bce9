"""Records -> agreement of predictions: in how many examples of a set variants of a workload predict the same. Pure.

The independent unit is the example, taken as one of those that the network will meet: intervals are over examples.
"""

from __future__ import annotations

from .agreement import Agreement, Row, agreements
from .comparison import Changed, Comparison, compare
from .margins import MarginBin, margin_bins
from .paired import kappa, mcnemar
from .proportion import Proportion, proportion, rule_of_three, wilson
from .variants import Answer, Gap, Variant, gaps

__all__ = [
    "Agreement",
    "Answer",
    "Changed",
    "Comparison",
    "Gap",
    "MarginBin",
    "Proportion",
    "Row",
    "Variant",
    "agreements",
    "compare",
    "gaps",
    "kappa",
    "margin_bins",
    "mcnemar",
    "proportion",
    "rule_of_three",
    "wilson",
]
