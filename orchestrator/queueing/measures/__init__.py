"""The measures of queueing: from the table of requests to figures with their intervals."""

from .figures import ClassFigures, Figure, Quantiles, Totals
from .leaving_out import interval
from .measure import Measured, measure
from .memory import relaxation_s
from .spanning import spanning
from .steady import short
