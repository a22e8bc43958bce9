"""A network on two backends: its graph divided into segments, and their plans joined into one (decision 0089)."""

from .divide import Segment, divide
from .join import join

__all__ = ["Segment", "divide", "join"]
