"""Earliest deadline first: what is to be over at a time comes before what is not, of its priority."""

from __future__ import annotations

from orchestrator.model.live.queue_view import Share, WaitingJob

from .fair_share import FairShare


class Deadline(FairShare):
    """Priority first; then the experiment whose deadline is the earliest, also where that is over; then fair share."""

    def level(self, job: WaitingJob, now: float, share: Share) -> tuple[float, float]:
        rest, none = super().level(job, now, share)
        return rest, none if job.deadline is None else job.deadline
