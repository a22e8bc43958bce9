"""Compare predictions: in how many examples of a set the results of a workload agree. Pure.

The independent unit is the example, taken as one of those that the network will meet: intervals are over examples.
"""

from __future__ import annotations

from .agreement import Agreement, Row, agreements
from .answers import AnswerRow, answer_rows
from .cell_results import Answer, CellResult, Gap, gaps
from .comparison import Changed, Comparison, compare
from .margins import MarginBin, margin_bins
from .paired import kappa, mcnemar
from .proportion import Proportion, exact, proportion, rule_of_three

__all__ = [
    "Agreement",
    "Answer",
    "AnswerRow",
    "CellResult",
    "Changed",
    "Comparison",
    "Gap",
    "MarginBin",
    "Proportion",
    "Row",
    "agreements",
    "answer_rows",
    "compare",
    "exact",
    "gaps",
    "kappa",
    "margin_bins",
    "mcnemar",
    "proportion",
    "rule_of_three",
]
