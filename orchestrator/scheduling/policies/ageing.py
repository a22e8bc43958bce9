"""Ageing: priority rises with waiting, so that whatever is submitted with a high one, nothing waits for ever."""

from __future__ import annotations

from orchestrator.model.live.queue_view import Share, WaitingJob

from .fair_share import FairShare

STEP_S = 600.0
"""Waiting that is worth one step of priority."""


class Ageing(FairShare):
    """A step of priority for each ten minutes since the experiment was submitted."""

    def level(self, job: WaitingJob, now: float, share: Share) -> tuple[float, float]:
        rest, deadline = super().level(job, now, share)
        return rest - max(0.0, now - job.submitted_at) // STEP_S, deadline
