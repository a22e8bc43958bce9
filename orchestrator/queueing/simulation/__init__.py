"""A run in virtual time: the same dispatcher and policies as with phones, and servers that are modelled."""

from __future__ import annotations

from .heat import HeatModel
from .simulate import simulate

__all__ = ["HeatModel", "simulate"]
