"""Enrol a device: find its power sources and calibrate its gauge, once for each system build (docs/howto/enrol.md)."""

from __future__ import annotations

from .calibrate import CannotCalibrate
from .profile import at_rest, enrol, ensure_calibrated, first_sight, look

__all__ = ["CannotCalibrate", "at_rest", "enrol", "ensure_calibrated", "first_sight", "look"]
