"""The phone itself refuses its supply: a switch of the battery's driver, which only root may write. Data goes on."""

from __future__ import annotations

from typing import Any

from orchestrator.model.enrolment import SupplyWay
from orchestrator.model.errors import Unsupported
from workers.connection.base import DeviceConnection
from workers.connection.quote import quote
from workers.session.conditions.root import root_shell

from .base import needed

NODES = {
    "/sys/class/power_supply/battery/input_suspend": ("1", "0"),
    "/sys/class/power_supply/battery/charging_enabled": ("0", "1"),
}
"""Node -> what cuts, what restores. The first suspends the input; the second only the charging on some phones."""
WHAT = "cutting the supply in the phone"


class RootNode:
    """Implements `Switch`."""

    way: SupplyWay = "root"
    needs_device = True

    def __init__(self, serial: str, connection: DeviceConnection | None, path: str) -> None:
        self._serial, self._connection, self._path = serial, connection, path

    def parameters(self) -> dict[str, Any]:
        return {"path": self._path}

    def cut(self) -> None:
        self._write(NODES[self._path][0])

    def restore(self) -> None:
        self._write(NODES[self._path][1])

    def _write(self, value: str) -> None:
        root = root_shell(needed(self._connection, self._serial), WHAT)
        root(f"{quote(['echo', value])} > {quote([self._path])}")


def find_node(connection: DeviceConnection) -> RootNode:
    """The first switch that the phone has. Raises Unsupported."""
    root = root_shell(connection, WHAT)
    for path in NODES:
        if root(f"cat {quote([path])} 2>/dev/null || true").strip():
            return RootNode(connection.serial, connection, path)
    raise Unsupported("its battery's driver has no switch", device=connection.serial, remedy="use a switchable hub")
