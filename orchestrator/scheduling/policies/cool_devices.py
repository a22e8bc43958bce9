"""Cool devices first: a phone that is warm from its last job is left to cool as long as another one is free."""

from __future__ import annotations

from orchestrator.model.device import Device
from orchestrator.model.live.queue_view import Share

from .fair_share import FairShare


class Coolest(FairShare):
    """The device with the lowest thermal status, of those the coolest; one that tells no temperature comes last."""

    def preference(self, device: Device, share: Share) -> tuple[float, ...]:  # noqa: ARG002
        state = device.state
        temps = [temp_c for temp_c in (state.battery_temp_c, state.skin_temp_c) if temp_c is not None]
        return (state.thermal_status or 0, max(temps, default=float("inf")))
