"""Longest first, for suites (R. L. Graham, "Bounds on multiprocessing timing anomalies", SIAM J. Appl. Math. 17, 1969):
the long jobs of an experiment begin first, so that no phone works on a long one alone at the end."""

from __future__ import annotations

from orchestrator.model.queue_view import WaitingJob

from .fair_share import FairShare


class LongestFirst(FairShare):
    """By the time that a block of the cell is known to take; those of which nothing is known come first."""

    def within(self, job: WaitingJob) -> tuple[float, ...]:
        return (-job.expected_s if job.expected_s is not None else float("-inf"),)
