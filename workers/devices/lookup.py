"""Find a phone of this host's adb server by serial number or address, without discovery."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from orchestrator.model.device import Health
from orchestrator.model.errors import FarmError, TransportLost, Unsupported
from orchestrator.model.quantity import counted
from workers.connection.adb import AdbConnection, AdbServer, ListedDevice
from workers.connection.addresses import by_call
from workers.connection.quote import quote

from .identity import Identity, read_identity

PARALLEL = 16


def find_phone(name: str, server: AdbServer) -> AdbConnection:
    """A connected phone by its adb address or its serial number.

    Raises TransportLost where it is not there or cannot be used, Unsupported where two phones have the serial number.
    """
    rows = server.devices()
    if listed := next((row for row in rows if row.address == name), None):
        return _named(listed, server)
    identities = _ask_all([row.address for row in rows if row.state == "device"], server)
    fitting = {identity: address for address, identity in reversed(identities.items()) if identity.serial == name}
    if len(fitting) > 1:
        remedy = f"name one by its address: {', '.join(fitting.values())}"
        raise Unsupported(
            f"{counted(len(fitting), 'phone has', 'phones have')} this serial number", device=name, remedy=remedy
        )
    for address in fitting.values():
        return AdbConnection(address, server, serial=name)
    raise TransportLost(
        f"not found; the adb server on {server.place} has: {_listed(rows, identities)}",
        device=name,
        remedy="connect the phone (`adb devices` lists it then), or name a device that `farm devices` lists",
    )


def _named(row: ListedDevice, server: AdbServer) -> AdbConnection:
    if row.state != "device":
        raise TransportLost(unusable(row, server)[1], device=row.address)
    return AdbConnection(row.address, server, serial=read_identity(AdbConnection(row.address, server)).serial)


def _ask_all(addresses: list[str], server: AdbServer) -> dict[str, Identity]:
    """Address -> identity of those that answer; a mute phone delays no other."""

    def ask(address: str) -> Identity | None:
        try:
            return read_identity(AdbConnection(address, server))
        except FarmError:
            return None

    with ThreadPoolExecutor(PARALLEL) as pool:
        answers = zip(addresses, pool.map(ask, addresses), strict=True)
        return {address: identity for address, identity in answers if identity}


def _listed(rows: Iterable[ListedDevice], identities: dict[str, Identity]) -> str:
    """Every row as a person knows it: by serial number, else by address and state."""

    def name(row: ListedDevice) -> str:
        found = identities.get(row.address)
        return found.serial if found and found.serial else f"{row.address} ({row.state})"

    return ", ".join(map(name, rows)) or "no phone"


def unusable(row: ListedDevice, server: AdbServer) -> tuple[Health, str]:
    """Health of a listed device that cannot be used, with what to do."""
    where = f" ({row.detail})" if row.detail else ""
    if row.state.startswith("no permissions"):
        return Health.UNAUTHORIZED, f"{row.state}: add a udev rule for the phone and replug it{where}"
    health, advice = _ADVICE.get(row.state, (Health.OFFLINE, _UNKNOWN.format(row.state or "nothing")))
    if row.state == "offline" and by_call(row.address):
        advice = "wake it and look at its network, or: {adb} reconnect offline"
    return health, advice.replace("{adb}", server.command).replace("{address}", quote([row.address])) + where


_UNKNOWN = (
    "adb says `{}`, which is no state that the farm knows: look at the phone's screen, and at adb's release notes"
)
_ADVICE: dict[str, tuple[Health, str]] = {
    "unauthorized": (Health.UNAUTHORIZED, "unlock the phone and accept this host's key"),
    "authorizing": (Health.UNAUTHORIZED, "wait until adb has shown its key; where the phone asks, accept it"),
    "connecting": (Health.OFFLINE, "wait, adb is calling it; if it stays so: {adb} disconnect {address}, and connect"),
    "detached": (Health.OFFLINE, "another program may have it; take it back: {adb} -s {address} attach"),
    "offline": (Health.OFFLINE, "replug it, or: {adb} reconnect offline"),
}
"""The health and the remedy in each state, by its own cause."""
for _state in ("bootloader", "recovery", "rescue", "sideload", "host"):
    _ADVICE[_state] = Health.OFFLINE, f"adb says `{_state}`: start Android on it"
