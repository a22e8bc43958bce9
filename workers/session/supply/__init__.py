"""Cut the supply of a device for a block, and restore it after any failure."""

from __future__ import annotations

from pathlib import Path

from orchestrator.model.device import Source
from orchestrator.model.enrolment import SupplyWay
from orchestrator.model.errors import Unsupported
from orchestrator.model.wiring import WiredDevice
from workers.connection.addresses import over_network
from workers.devices.fleet import Member
from workers.power.model import control_socket

from .base import NoCable, SupplyStuck, Switch
from .discharging import DISCHARGING_S, PowerContaminated, await_discharging
from .journal import PlannedCut, SupplyJournal, cut_supplies
from .program import of_wiring
from .root_node import find_node
from .virtual import VirtualPort

__all__ = [
    "DISCHARGING_S", "PlannedCut", "PowerContaminated", "SupplyJournal", "SupplyStuck", "Switch",
    "await_discharging", "cut_supplies", "find_switch", "supply_way",
]  # fmt: skip


def find_switch(member: Member, wired: WiredDevice, state: Path) -> Switch:
    """Find how to cut a phone's supply: as the wiring file says, else as the phone offers. Raises Unsupported."""
    serial = member.facts.serial
    if wired.supply is not None:
        program = of_wiring(serial, wired.supply)
        program.check()
        return program
    if member.facts.source is Source.VIRTUAL and (control := control_socket(state)):
        return VirtualPort(serial, control)
    try:
        return find_node(member.connection)
    except Unsupported as e:
        if over_network(member.connection.address):
            return NoCable()
        raise Unsupported(
            f"the farm has no way to cut its supply: the wiring file names none, and {e.args[0]}",
            device=serial,
            remedy="give `supply` in the wiring file (docs/howto/conditions.md), or use conditions.supply: discharging",
        ) from e


def supply_way(member: Member, wired: WiredDevice, state: Path) -> SupplyWay:
    """Return how the farm can cut the supply; `none` where it cannot. Raises TransientError."""
    if member.facts.kind != "phone":
        return "none"
    try:
        return find_switch(member, wired, state).way
    except Unsupported:
        return "none"
