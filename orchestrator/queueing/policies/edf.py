"""Earliest deadline first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .policy import Policy

if TYPE_CHECKING:
    from orchestrator.queueing.dispatch.request import Request


class Edf(Policy):
    """One line, the earliest deadline first; those without one come last."""

    def rank(self, request: Request, now: float) -> float:
        return request.deadline
