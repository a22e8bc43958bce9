"""Passes that make of a typed graph what a backend computes: whole numbers as such, or all in fp32."""

from .in_single import in_single
from .in_types import in_types

__all__ = ["in_single", "in_types"]
