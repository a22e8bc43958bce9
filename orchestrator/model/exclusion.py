"""A cell that is not run, and why."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Exclusion:
    """A cell that is not run on a device (`serial` empty: on none), in any block."""

    serial: str
    cell: str
    """Label of the cell."""
    reason: str
