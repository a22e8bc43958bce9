"""The Protocol of a switch that cuts a device's supply and restores it."""

from __future__ import annotations

from typing import Any, Protocol

from orchestrator.model.enrolment import SupplyWay
from orchestrator.model.errors import TransientError
from workers.connection.base import DeviceConnection


class SupplyStuck(TransientError):
    """The supply could not be switched: another attempt may do."""

    cause = "supply"


class Switch(Protocol):
    """Cuts and restores the supply of one device; both may be repeated."""

    way: SupplyWay
    needs_device: bool
    """True if the device itself is asked to switch, so that it must be connected to restore the supply."""

    def parameters(self) -> dict[str, Any]:
        """The parameters of the same switch after a crash of this process; kept on the host's disk."""
        ...

    def cut(self) -> None:
        """Raises SupplyStuck, TransportLost."""
        ...

    def restore(self) -> None:
        """Raises SupplyStuck, TransportLost."""
        ...


def needed(connection: DeviceConnection | None, serial: str) -> DeviceConnection:
    """The connection, where there is one. Raises SupplyStuck."""
    if connection is None:
        raise SupplyStuck(
            "its supply was cut in the phone itself, which is not connected",
            device=serial,
            remedy="connect it, then `farm restore`",
        )
    return connection


class NoCable:
    """Implements `Switch` as its null: a phone that is reached over the network hangs on no cable of this host.

    Whether it runs from its battery, the agent waits to see.
    """

    way: SupplyWay = "wireless"
    needs_device = False

    def parameters(self) -> dict[str, Any]:
        return {}

    def cut(self) -> None: ...

    def restore(self) -> None: ...
