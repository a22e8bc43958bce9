"""The largest dimension that a device bears: the search, and what it found."""

from .ended import Ended, ended
from .found import Limit, Probe, limits, weights_of
from .search import KILLS, REPEATS, next_value, stand

__all__ = ["KILLS", "REPEATS", "Ended", "Limit", "Probe", "ended", "limits", "next_value", "stand", "weights_of"]
