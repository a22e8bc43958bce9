"""A run on phones: the same dispatcher and policies as simulated, on the clock of this host."""

from __future__ import annotations

from .run import LiveRun, run_live
from .wire import Wire

__all__ = ["LiveRun", "Wire", "run_live"]
