"""A supply that is cut for one block. The hub may cut the data lines with it: the phone is then away on purpose."""

from __future__ import annotations

import time
from dataclasses import dataclass

from workers.connection.base import DeviceConnection

from .base import Switch
from .journal import SupplyJournal


@dataclass
class PlannedCut:
    """Begins when the agent runs, ends when it is done, or is expected to be."""

    switch: Switch
    journal: SupplyJournal
    connection: DeviceConnection
    expected_s: float
    """The time for which the agent needs the phone to itself."""
    ends_at: float = 0.0
    """Monotonic time at which the agent is expected to be done; 0: not cut yet."""

    def begin(self) -> None:
        """Cut. Raises SupplyStuck, TransportLost; what is cut is journalled."""
        self.journal.cut(self.switch)
        self.ends_at = time.monotonic() + self.expected_s

    def end(self) -> None:
        """Restore; nothing where it is not cut. Raises SupplyStuck, TransportLost; the journal then stays."""
        self.journal.restore(self.connection)
        self.ends_at = 0.0

    @property
    def holds(self) -> bool:
        return self.ends_at > 0.0

    @property
    def left_s(self) -> float:
        """The time until the agent is expected to be done; 0 where it is, or where nothing is cut."""
        return max(0.0, self.ends_at - time.monotonic()) if self.holds else 0.0
