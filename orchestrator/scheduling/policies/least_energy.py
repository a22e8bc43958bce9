"""Least energy: work goes where an inference is expected to take the fewest joules."""

from __future__ import annotations

from orchestrator.model.device import Device
from orchestrator.model.live.queue_view import Share

from .fair_share import FairShare


class LeastEnergy(FairShare):
    """The free device that takes least for what the experiment computes, as far as blocks have told; one of which
    nothing is known counts as the mean of the others."""

    needs_energy = True

    def preference(self, device: Device, share: Share) -> tuple[float, ...]:
        return (share.energy.get(device.facts.serial, 1.0),)
