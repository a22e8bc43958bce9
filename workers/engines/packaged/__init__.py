"""Engines that a Python package brings: each runs on the farm's own machines, in an environment of its own."""

from .base import ROOT, PackagedEngine
from .environment import Environment

__all__ = ["ROOT", "Environment", "PackagedEngine"]
