"""A network on two backends: its graph divided into segments, and their plans joined (docs/architecture/plan.md)."""

from .divide import Segment, divide
from .join import join
from .windows import with_windows

__all__ = ["Segment", "divide", "join", "with_windows"]
