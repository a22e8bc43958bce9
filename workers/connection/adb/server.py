"""This host's adb server, and the devices that it lists."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from functools import partial
from pathlib import Path
from typing import NamedTuple

from orchestrator.model.errors import ServiceDown, SetupError, TransportLost
from orchestrator.system.config import Settings
from workers.connection.addresses import by_call
from workers.connection.server_watch import ServerWatch
from workers.connection.sockets import connect_tcp, connect_unix

from .stream import WENT_AWAY, AdbStream

CONNECT_S = 5.0
NAME_WIDTH = 22
STATES = (
    *("device", "offline", "unauthorized", "authorizing", "connecting", "detached", "bootloader", "recovery"),
    *("rescue", "sideload", "host", "unknown"),
)
"""The states of devices in adb's words; a newer one may know more."""
_TAGS = re.compile(r"(?:\s+[a-z_]+:\S*)+\s*$")
_KNOWN_STATE = re.compile(rf"(?P<name>.*?\S)\s+(?P<state>no permissions\b.*|no device|{'|'.join(STATES)})")
_AFTER_MDNS = re.compile(r"(?P<name>.*\._adb[\w-]*\._tcp\S*)\s+(?P<state>.+)")


class ListedDevice(NamedTuple):
    """One row of the server's list."""

    address: str
    """The server's name for it: its USB serial number, `usb:PORT`, `host:port`, or a name of mDNS."""
    state: str
    """`device`, `offline`, `unauthorized`, `no permissions (...)`, ..."""
    detail: str
    """`usb:2-1 model:...`: where it hangs and what it says it is."""


class AdbServer:
    """This host's adb server: the one that listens on `port`, or on the unix socket `socket` where one is given, of the
    same version as the binary `path`."""

    def __init__(self, port: int = 5037, path: str = "adb", socket: Path | None = None) -> None:
        self.port = port
        self.path = path
        self.socket = socket
        self.open = partial(connect_tcp, port) if socket is None else partial(connect_unix, socket)
        """Makes a connection on which nothing was asked yet, within so many seconds. Raises OSError."""
        self._watch = ServerWatch(partial(self.open, CONNECT_S))

    def look(self) -> None:
        """Note whether it went away since the last look."""
        self._watch.look()

    @property
    def is_shaken(self) -> bool:
        """True if it was away a moment ago: who lost a phone then cannot blame the phone."""
        return self._watch.is_shaken

    @property
    def place(self) -> str:
        """The place where it listens, for people."""
        return f"port {self.port}" if self.socket is None else str(self.socket)

    @property
    def command(self) -> str:
        """The words by which a person's `adb` reaches this server."""
        if self.socket is None:
            return f"adb -P {self.port}"
        return f"ADB_SERVER_SOCKET={self.variables['ADB_SERVER_SOCKET']} adb"

    @property
    def variables(self) -> dict[str, str]:
        """The environment in which any `adb` reaches this server."""
        if self.socket is None:
            return {"ANDROID_ADB_SERVER_PORT": str(self.port)}
        return {"ADB_SERVER_SOCKET": f"localfilesystem:{self.socket}"}

    def check(self, *, deadline_s: float = 5.0) -> str:
        """Compare the server's version with the binary's; returns it, e.g. `41`.

        Raises ServiceDown where nothing listens, SetupError where the versions differ or something else listens;
        never ends the other server.
        """
        wanted = self._binary_version()
        try:
            version = str(int(self._ask("host:version", deadline_s), 16))
        except (ServiceDown, ValueError) as e:
            if isinstance(e.__cause__, ConnectionRefusedError):
                raise
            what = f"what listens on {self.place} is no adb server: {e.args[0]}"  # without advice to start one there
            raise SetupError(what, remedy=self._move()) from e
        if version != wanted:
            raise SetupError(
                f"the adb server on {self.place} has version {version}, {self.path} has {wanted}",
                remedy=self._move(),
            )
        return version

    def devices(self, *, deadline_s: float = 5.0) -> list[ListedDevice]:
        """Every device that the server lists now, usable or not. Raises ServiceDown."""
        return parse_devices(self._ask("host:devices-l", deadline_s))

    def features(self, address: str, *, deadline_s: float = 5.0) -> frozenset[str]:
        """Return what a phone's adbd and this server can both do, e.g. `shell_v2`. Raises ServiceDown."""
        return frozenset(self._ask(f"host-serial:{address}:features", deadline_s).split(","))

    def connect(self, address: str, *, deadline_s: float = 15.0) -> None:
        """Connect to a phone at `host:port`. Raises TransportLost with the server's words."""
        reply = self._ask(f"host:connect:{address}", deadline_s)
        if not reply.startswith(("connected to", "already connected to")):
            raise TransportLost(
                f"adb connect: {reply}", device=address, remedy="check the address and the phone's screen"
            )

    def disconnect(self, address: str, *, deadline_s: float = 5.0) -> None:
        """Forget a phone that was connected by address; unknown ones are no error."""
        try:
            self._ask(f"host:disconnect:{address}", deadline_s)
        except ServiceDown as e:
            if "no such device" not in str(e):
                raise

    def _ask(self, service: str, deadline_s: float) -> str:
        try:
            stream = AdbStream(self.open, deadline_s)
            with stream:
                stream.request(service)
                return str(stream.read_string_block())
        except WENT_AWAY as e:
            raise ServiceDown(
                f"adb server on {self.place}: {service}: {e or type(e).__name__}",
                remedy=f"start it: {self.path} -P {self.port} start-server"
                if self.socket is None
                else "see `farm status`",
            ) from e

    def _binary_version(self) -> str:
        try:
            done = subprocess.run([self.path, "version"], capture_output=True, text=True, timeout=10, check=True)
            return done.stdout.split("version 1.0.", 1)[1].split()[0]
        except (OSError, subprocess.SubprocessError, IndexError) as e:
            raise SetupError(
                f"{self.path}: not a usable adb: {e}", remedy="apt-get install adb, or set FARM_ADB_PATH"
            ) from e

    def _move(self) -> str:
        return "give the farm a port of its own with FARM_ADB_PORT, or the other server's binary with FARM_ADB_PATH"


def server_of(settings: Settings) -> AdbServer:
    """The adb server that the settings name."""
    return AdbServer(settings.adb_port, settings.adb_path or "adb", settings.adb_socket)


def parse_devices(listing: str) -> list[ListedDevice]:
    """Rows of `host:devices-l`: `%-22s STATE [usb:X] [product:X ...] [transport_id:N]`; names and states may hold
    spaces.

    Phones that claim the same USB serial number, or one that reads like a network's address, are named by their port,
    which adb takes as an address too: so an address alone tells how its phone is reached.
    """
    rows = [row for line in listing.splitlines() if (row := _parse_row(line.strip())) is not None]
    times = Counter(row.address for row in rows)
    odd = [times[row.address] > 1 or by_call(row.address) for row in rows]
    return [row._replace(address=_port(row)) if each else row for row, each in zip(rows, odd, strict=True)]


def _parse_row(line: str) -> ListedDevice | None:
    """None for a line that names no device, such as a daemon's own words."""
    words = _TAGS.search(line)
    named, detail = (line[: words.start()], words[0].strip()) if words else (line, "")
    if not named.strip() or named.startswith("*") or named.strip() == "List of devices attached":
        return None
    address, state = _name_and_state(named.rstrip())
    return ListedDevice(address, state, " ".join(detail.split())) if address and (state or detail) else None


def _name_and_state(named: str) -> tuple[str, str]:
    """A short name is padded; else the longest state that is known ends the row, or a name of mDNS is over at its
    suffix; else the name has no space."""
    if named[NAME_WIDTH - 1 : NAME_WIDTH + 1] == "  " and named[NAME_WIDTH + 1 : NAME_WIDTH + 2].strip():
        return named[:NAME_WIDTH].rstrip(), named[NAME_WIDTH + 1 :]
    for pattern in (_KNOWN_STATE, _AFTER_MDNS):
        if match := pattern.fullmatch(named):
            return match["name"].rstrip(), match["state"].strip()
    name, _, state = named.replace("\t", " ").partition(" ")
    return name, state.strip()


def _port(row: ListedDevice) -> str:
    """`usb:2-1`, where the row names it."""
    return next((tag for tag in row.detail.split() if tag.startswith("usb:")), row.address)
