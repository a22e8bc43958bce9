"""Compare predictions: in how many examples of a set the results of a workload agree. Pure.

The independent unit is the example, taken as one of those that the network will meet: intervals are over examples.
"""

from .agreement import Agreement, Row, agreements
from .answers import AnswerRow, answer_rows
from .cell_results import Answer, CellResult, Gap, gaps
from .comparison import Changed, Comparison, compare
from .margins import MarginBin, margin_bins
from .paired import kappa, mcnemar
from .proportion import Proportion, exact, proportion, rule_of_three
