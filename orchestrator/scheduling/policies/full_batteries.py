"""Full batteries first: phones are worn evenly, and the flat ones charge while others work."""

from __future__ import annotations

from orchestrator.model.device import Device
from orchestrator.model.live.queue_view import Share

from .fair_share import FairShare


class MostCharged(FairShare):
    """The device with the fullest battery; what has none, or does not tell, comes first: it does not run flat."""

    def preference(self, device: Device, share: Share) -> tuple[float, ...]:  # noqa: ARG002
        percent = device.state.battery_percent
        return (-percent if percent is not None else -101.0,)
