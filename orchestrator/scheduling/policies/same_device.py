"""Same device: what is compared is measured on one device, although any would do."""

from __future__ import annotations

from orchestrator.model.live.queue_view import Share

from .fair_share import FairShare


class SameDevice(FairShare):
    """All jobs of an experiment go where its latest attempt went; where that device gets no work, to another one."""

    def device_of(self, share: Share) -> str:
        return share.serial
