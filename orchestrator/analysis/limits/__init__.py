"""How large a dimension may be on a device: the search, and what it found."""

from .found import REPEATS, Ended, Limit, Probe, ended, limits, weights_of
from .search import next_value

__all__ = ["REPEATS", "Ended", "Limit", "Probe", "ended", "limits", "next_value", "weights_of"]
