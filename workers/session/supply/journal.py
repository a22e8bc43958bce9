"""Journal a supply on the host's disk before it is cut, until it is restored.

A phone without its supply may be off adb, so that this journal must do without it: the next start of a worker and
`farm restore` read it, and switch the supply on again.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.system.durable_files import file_name, write_durably
from workers.connection.base import DeviceConnection
from workers.session.saved_settings import JournalUnreadable

from .base import NoCable, Switch
from .program import from_parameters
from .root_node import RootNode
from .virtual import VirtualPort

FOLDER = "supply"


class SupplyJournal:
    """The supply of one device; the caller holds the device's lock."""

    def __init__(self, state: Path, serial: str) -> None:
        self._path = state / FOLDER / f"{file_name(serial)}.json"
        self._serial = serial

    @property
    def is_cut(self) -> bool:
        """True if it is cut, or may be."""
        return self._path.exists()

    @property
    def needs_device(self) -> bool:
        """True if the device must be connected to restore its supply. Raises JournalUnreadable."""
        return self.is_cut and _switch(_read(self._path), self._serial, None).needs_device

    def cut(self, switch: Switch) -> None:
        """Journal, then cut. Raises SupplyStuck, TransportLost; the journal then stays."""
        write_durably(
            self._path, json.dumps({"serial": self._serial, "way": switch.way, "told": switch.parameters()}, indent=1)
        )
        switch.cut()

    def restore(self, connection: DeviceConnection | None) -> bool:
        """Switch on what was cut; whether anything was.

        Raises JournalUnreadable, SupplyStuck, TransportLost; the journal then stays.
        """
        if not self.is_cut:
            return False
        _switch(_read(self._path), self._serial, connection).restore()
        self._path.unlink(missing_ok=True)
        return True


def cut_supplies(state: Path) -> tuple[str, ...]:
    """Serials of the devices whose supply may be cut; of an unreadable journal its file's name."""
    serials = []
    for path in sorted((state / FOLDER).glob("*.json")):
        try:
            serials.append(str(_read(path)["serial"]))
        except JournalUnreadable:  # whoever restores it says what is wrong with it
            serials.append(path.stem)
    return tuple(serials)


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text())
        return {"serial": str(found["serial"]), "way": str(found["way"]), "told": dict(found["told"])}
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as e:
        raise JournalUnreadable(
            f"{path} is unreadable: {e}", remedy="switch the device's supply on by hand, then delete the file"
        ) from e


def _switch(found: dict[str, Any], serial: str, connection: DeviceConnection | None) -> Switch:
    try:
        return _switch_of(found["way"], found["told"], serial, connection)
    except (KeyError, TypeError, ValueError) as e:
        raise JournalUnreadable(
            f"the journal of {serial}'s supply does not say how it was cut: {e!r}",
            device=serial,
            remedy="switch the device's supply on by hand, then delete the file",
        ) from e


def _switch_of(way: Any, parameters: dict[str, Any], serial: str, connection: DeviceConnection | None) -> Switch:
    if way == "uhubctl" or way == "command":
        return from_parameters(serial, way, parameters)
    if way == "root":
        return RootNode(serial, connection, parameters["path"])
    if way == "virtual":
        return VirtualPort(serial, Path(parameters["control"]))
    if way != NoCable.way:
        raise ValueError(f"no such way: {way!r}")
    return NoCable()


@dataclass
class PlannedCut:
    """A supply that is cut for one block: from when the agent runs until it is done, or is expected to be.

    The hub may cut the data lines with it: the phone is then away on purpose.
    """

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
