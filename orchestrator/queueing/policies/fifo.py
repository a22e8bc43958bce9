"""First in, first out."""

from __future__ import annotations

from orchestrator.queueing.dispatch.policy import Policy


class Fifo(Policy):
    """One line; whoever has been idle longest serves the first."""
