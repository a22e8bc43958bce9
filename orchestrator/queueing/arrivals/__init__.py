"""Arrivals: the moments at which requests of a class are meant to arrive. Pure: the same seed, the same moments."""

from __future__ import annotations

from .times import arrival_times

__all__ = ["arrival_times"]
