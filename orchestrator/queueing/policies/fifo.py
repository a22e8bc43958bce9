"""First in, first out."""

from __future__ import annotations

from .policy import Policy


class Fifo(Policy):
    """One line; whoever has been idle longest serves the first."""
