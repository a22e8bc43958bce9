"""Policies that prefer some of the free devices."""

from __future__ import annotations

from orchestrator.model.device import Device
from orchestrator.model.live.queue_view import Share

from .fair_share import FairShare


class Coolest(FairShare):
    """The device with the lowest thermal status, of those the coolest; one that tells no temperature comes last.
    A phone that is warm from its last job cools meanwhile."""

    def preference(self, device: Device, share: Share) -> tuple[float, ...]:  # noqa: ARG002
        state = device.state
        temps = [temp_c for temp_c in (state.battery_temp_c, state.skin_temp_c) if temp_c is not None]
        return (state.thermal_status or 0, max(temps, default=float("inf")))


class MostCharged(FairShare):
    """The device with the fullest battery; what has none, or does not tell, comes first: it does not run flat.
    Phones are worn evenly, and the flat ones charge while others work."""

    def preference(self, device: Device, share: Share) -> tuple[float, ...]:  # noqa: ARG002
        percent = device.state.battery_percent
        return (-percent if percent is not None else -101.0,)


class LeastEnergy(FairShare):
    """The free device that takes least for what the experiment computes, as far as blocks have told; one of which
    nothing is known counts as the mean of the others."""

    needs_energy = True

    def preference(self, device: Device, share: Share) -> tuple[float, ...]:
        return (share.energy.get(device.facts.serial, 1.0),)


class SameDevice(FairShare):
    """All jobs of an experiment go where its latest attempt went, so that what is compared is measured on one device;
    where that device gets no work, to another one."""

    def device_of(self, share: Share) -> str:
        return share.serial
