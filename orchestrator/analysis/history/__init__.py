"""A history: each figure of each cell on each device night after night, where it changed, and what that was. Pure.

figures of nights (`series.py`) -> change points and what is new (`steps.py`) -> who is to blame (`blame.py`);
`history` goes the whole way.
"""

from __future__ import annotations

from .history import Change, History, Trail, history
from .series import Cause, Figure, Night, of_sides

__all__ = ["Cause", "Change", "Figure", "History", "Night", "Trail", "history", "of_sides"]
