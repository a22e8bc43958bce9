"""Identify a phone by its own serial number, however it is connected."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass

from orchestrator.model.device import Source
from workers.connection.base import DeviceConnection

from .install import run
from .probe import SOURCE, read_boot_id, source_of

ASK_S = 5.0
"""A phone that does not answer within this is not asked for longer."""
_USABLE = re.compile(r"(?!local-|unknown$|0+$)[\w.:@-]{1,64}")
"""A serial number that can be a name in the farm; `local-...` is this host's own."""


@dataclass(frozen=True)
class Identity:
    """The identity that a phone tells; two connections with the same one lead to the same phone."""

    serial: str
    """`ro.serialno`; empty where it names none that can be used."""
    boot_id: str
    source: Source = Source.PHONE


@dataclass(frozen=True)
class Name:
    """The farm's name for the phone at an address."""

    serial: str
    reason: str = ""
    """The reason why it is not called by its own serial number."""


def read_identity(connection: DeviceConnection) -> Identity:
    """Ask the phone; three short commands. Raises TransportLost, DeviceSick."""
    serial, source = (run(connection, "getprop", name, deadline_s=ASK_S).strip() for name in ("ro.serialno", SOURCE))
    boot_id = read_boot_id(connection, deadline_s=ASK_S)
    return Identity(serial if _USABLE.fullmatch(serial) else "", boot_id, source_of(source))


class Names:
    """Address -> name of the phones of one host. Safe between threads.

    A name is held by the first connection to its phone; a second one stands by until the first is released.
    """

    def __init__(self, ask: Callable[[str], Identity]) -> None:
        self._ask = ask
        self._lock = threading.Lock()
        self._remembered: dict[str, str] = {}
        self._sources: dict[str, Source] = {}
        """The source of what last answered at an address."""
        self._holders: dict[str, str] = {}
        """Serial -> address."""

    def claim(self, address: str) -> Name | None:
        """Name the phone at a connected address; None where another connection to it holds its name.

        Raises TransportLost where this phone, or the one that holds the name, does not answer.
        """
        identity = self._ask(address)
        with self._lock:
            self._sources[address] = identity.source
        if not identity.serial:
            return self._by_address(address, "it has no serial number of its own (ro.serialno)")
        with self._lock:
            holder = self._holders.setdefault(identity.serial, address)
            self._remembered[address] = identity.serial
        if holder == address:
            return Name(identity.serial)
        if self._ask(holder) == identity:
            return None
        return self._by_address(address, f"the phone at {holder} has the same serial number {identity.serial}")

    def _by_address(self, address: str, why: str) -> Name:
        with self._lock:
            free = self._holders.get(address, address) == address
            serial = address if free else f"{address}-2"  # the other phone's serial number may read like an address
            self._remembered[address] = serial
            self._holders[serial] = address
        return Name(serial, f"named by its adb address: {why}")

    def serial(self, address: str) -> str:
        """The phone's name as last known, also while it is away; the address of one that never answered."""
        with self._lock:
            return self._remembered.get(address, address)

    def source(self, address: str) -> Source:
        """Return the source of what answered there last; a phone, where nothing ever did."""
        with self._lock:
            return self._sources.get(address, Source.PHONE)

    def speaks(self, address: str) -> bool:
        """Return whether this address shows the state of its phone: no other connection holds the name."""
        with self._lock:
            return self._holders.get(self._remembered.get(address, address), address) == address

    def release(self, address: str) -> None:
        """The connection is gone: another one to the same phone may take over. The name is remembered."""
        with self._lock:
            self._holders = {serial: holder for serial, holder in self._holders.items() if holder != address}

    def is_known(self, address: str) -> bool:
        """Return whether its phone was ever named."""
        with self._lock:
            return address in self._remembered

    def forget(self, address: str) -> None:
        self.release(address)
        with self._lock:
            self._remembered.pop(address, None)
            self._sources.pop(address, None)
