"""Earliest deadline first."""

from __future__ import annotations

from orchestrator.queueing.dispatch.policy import Policy
from orchestrator.queueing.dispatch.request import Request


class Edf(Policy):
    """One line, the earliest deadline first; those without one come last."""

    def rank(self, request: Request, now: float) -> float:
        return request.deadline
