"""Farms that show what the product does, without a phone: a first experiment, and a night that finds a slow-down."""

from __future__ import annotations

from .session import SPEC, Demo

__all__ = ["SPEC", "Demo"]
