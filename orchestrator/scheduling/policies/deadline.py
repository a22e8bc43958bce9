"""Earliest deadline first (C. L. Liu and J. W. Layland, "Scheduling algorithms for multiprogramming in a hard-real-time
environment", J. ACM 20, 1973): within a priority, what must end first comes first; what has no deadline comes last."""

from __future__ import annotations

from orchestrator.model.queue_view import WaitingJob

from .fair_share import FairShare

SPAN_S = 1e11
"""More than any Unix time: a deadline never outweighs a priority."""


class Deadline(FairShare):
    """Experiments of one priority by their deadlines; two with the same one share the farm."""

    def level(self, job: WaitingJob, now: float) -> float:  # noqa: ARG002
        due = min(job.deadline, SPAN_S) if job.deadline is not None else SPAN_S
        return -job.priority - 1 + due / SPAN_S
