"""Fair share, the default: priority first, then the experiment that runs least; the device that fewest jobs want."""

from __future__ import annotations

import math
from typing import Protocol

from orchestrator.model.device import Device
from orchestrator.model.live.queue_view import Share, WaitingJob


class PlacementPolicy(Protocol):
    """The decisions of a policy; whatever it says, no job that could run waits while one of its devices is free."""

    needs_expected: bool
    """It asks for `Share.expected_s`."""
    needs_energy: bool
    """It asks for `Share.energy`."""

    def level(self, job: WaitingJob, now: float, share: Share) -> tuple[float, float]:
        """Return levels by priority and deadline: the lowest first; experiments with the same share the farm. `now` is
        Unix time. Jobs that go by different policies are compared: the parts mean the same in all of them."""

    def preference(self, device: Device, share: Share) -> tuple[float, ...]:
        """Order among the devices that are free for a job, before that by demand: the lowest first."""

    def device_of(self, share: Share) -> str:
        """The only device for the jobs of an experiment, as long as it gets work; empty: each of theirs."""


class FairShare:
    """The first job of the experiment that runs least, of those of the highest priority."""

    needs_expected = needs_energy = False

    def level(self, job: WaitingJob, now: float, share: Share) -> tuple[float, float]:  # noqa: ARG002
        return -job.priority, math.inf

    def preference(self, device: Device, share: Share) -> tuple[float, ...]:  # noqa: ARG002
        return ()

    def device_of(self, share: Share) -> str:  # noqa: ARG002
        return ""
