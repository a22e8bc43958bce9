"""Engines that a Python package brings: each runs on the farm's own machines, in an environment of its own."""

from .answering import AnsweringEngine
from .base import ROOT, PackagedEngine
from .environment import Environment

__all__ = ["ROOT", "AnsweringEngine", "Environment", "PackagedEngine"]
