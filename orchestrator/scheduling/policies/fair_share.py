"""Fair share, the default: priority first, then the experiment that runs least; the device that fewest jobs want."""

from __future__ import annotations

from typing import Protocol

from orchestrator.model.device import Device
from orchestrator.model.queue_view import WaitingJob


class PlacementPolicy(Protocol):
    """What a policy decides; whatever it says, no job that could run waits while one of its devices is free."""

    def level(self, job: WaitingJob, now: float) -> float:
        """The lowest level comes first; within a level experiments share the farm. `now` is Unix time."""

    def preference(self, device: Device) -> tuple[float, ...]:
        """Order among the devices that are free for a job, before that by demand: the lowest first."""


class FairShare:
    """The first job of the experiment that runs least, of those of the highest priority."""

    def level(self, job: WaitingJob, now: float) -> float:  # noqa: ARG002
        return -job.priority

    def preference(self, device: Device) -> tuple[float, ...]:  # noqa: ARG002
        return ()
