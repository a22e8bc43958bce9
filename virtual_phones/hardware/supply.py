"""The conditions under which USB power reaches the battery."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Supply:
    """A cable, the port at its other end, and a switch in the phone that only root may use."""

    plugged: bool = False
    """True if a cable that gives power is in the phone."""
    port_on: bool = True
    """True if the hub gives power to the port."""
    suspended: bool = False
    """True if the phone refuses it: `input_suspend`."""

    @property
    def powered(self) -> bool:
        """True if the phone takes USB power."""
        return self.plugged and self.port_on and not self.suspended
