"""Longest first: of experiments that are handed in together, what takes longest begins first, so that nothing long is
left when the rest is over."""

from __future__ import annotations

from orchestrator.model.live.queue_view import Share, WaitingJob

from .fair_share import FairShare

AFTER_DEADLINES = 1e12
"""Later than any deadline, as Unix time, and before experiments that say nothing; a millisecond still counts."""


class LongestFirst(FairShare):
    """Priority first; then the experiment whose waiting work is expected to take longest, one of which nothing is known
    before all; then fair share."""

    needs_expected = True

    def level(self, job: WaitingJob, now: float, share: Share) -> tuple[float, float]:
        rest, _ = super().level(job, now, share)
        known = share.expected_s
        return rest, AFTER_DEADLINES - (AFTER_DEADLINES / 2 if known is None else min(known, AFTER_DEADLINES / 4))
