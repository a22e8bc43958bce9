"""Compare two sides: what was measured on both becomes a ratio with its interval and a verdict. Pure.

figures of blocks -> rows of a side (`rows.py`) -> cells that both have (`matching.py`) -> a row a metric
(`cell_rows.py`) -> ratios (`ratio.py`, `accuracy.py`) -> verdicts of the whole table (`verdict.py`); `compare` goes the
whole way.
"""

from .compare import compare
from .compared import Compared, with_engines
from .matching import COLUMNS, of_metrics, only, sides_of
from .metrics import METRICS, Metric, Rules
from .rows import SideRow, answers_of, excluded_rows, rows_of, time_of
from .two_sides import alike
