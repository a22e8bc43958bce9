"""Policies that order jobs by more than their priority."""

from __future__ import annotations

from orchestrator.model.live.queue_view import Share, WaitingJob

from .fair_share import FairShare

STEP_S = 600.0
"""Waiting that is worth one step of priority."""
AFTER_DEADLINES = 1e12
"""Later than any deadline, as Unix time, and before experiments that say nothing; a millisecond still counts."""


class Ageing(FairShare):
    """A step of priority for each ten minutes since the experiment was submitted: nothing waits for ever."""

    def level(self, job: WaitingJob, now: float, share: Share) -> tuple[float, float]:
        rest, deadline = super().level(job, now, share)
        return rest - max(0.0, now - job.submitted_at) // STEP_S, deadline


class Deadline(FairShare):
    """Priority first; then the experiment whose deadline is the earliest, also where that is over; then fair share."""

    def level(self, job: WaitingJob, now: float, share: Share) -> tuple[float, float]:
        rest, none = super().level(job, now, share)
        return rest, none if job.deadline is None else job.deadline


class LongestFirst(FairShare):
    """Priority first; then the experiment whose waiting work is expected to take longest, so that nothing long is left
    when the rest is over, one of which nothing is known before all; then fair share."""

    needs_expected = True

    def level(self, job: WaitingJob, now: float, share: Share) -> tuple[float, float]:
        rest, _ = super().level(job, now, share)
        known = share.expected_s
        return rest, AFTER_DEADLINES - (AFTER_DEADLINES / 2 if known is None else min(known, AFTER_DEADLINES / 4))
