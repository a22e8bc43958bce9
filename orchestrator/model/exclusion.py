"""A combination that is not run, and why."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Exclusion:
    """A combination that is not run on a device (`serial` empty: on none), in any block."""

    serial: str
    cell: str
    """Label of the combination."""
    reason: str
