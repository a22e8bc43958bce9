"""Write down what devices are, whenever one is not what it was."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable

from orchestrator.ledger import Ledger
from orchestrator.ledger.said.history import DeviceWas, was_of
from orchestrator.model.device import Device, Health

log = logging.getLogger(__name__)

LOOK_S = 30.0
AT_ONCE = 500
"""Rows of one look: a turn is not to wait for those of ten thousand phones, once."""


class DeviceHistory:
    """Remembers what was written, so that a look at devices that stay as they are asks the ledger nothing."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger, self._looked_at = ledger, float("-inf")
        self._known: dict[str, DeviceWas] | None = None
        self._full = set[str]()

    def look(self, devices: Iterable[Device]) -> None:
        """Look at those that are ready, now and then: what is being probed does not tell all. Raises ServiceDown."""
        if time.monotonic() < self._looked_at + LOOK_S:
            return
        known, now = self._known if self._known is not None else self._ledger.standing.newest(), time.time()
        said = [was_of(device, now) for device in devices if device.state.health is Health.READY]
        changed = [was for was in said if was.serial not in self._full and not was.is_as(known.get(was.serial))]
        if changed := changed[:AT_ONCE]:
            self._full.update(full := self._ledger.standing.add_history(changed))
            if full:
                log.error("event=history_full devices=%d: their host has shown too many", len(full))
        self._known = known | {was.serial: was for was in changed}
        self._looked_at = time.monotonic()
