"""Connect to a phone over ADB. The only module that knows ADB.

adbutils frames the messages; the clock is ours: its `timeout` bounds one read, while a call here has one deadline for
everything from connecting to the last byte. It also never starts a server: whoever owns the port does that.
"""

from __future__ import annotations

import re
import secrets
import struct
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from socket import socket as Connection  # noqa: N812
from typing import NamedTuple

import adbutils

from kernels.checkpoint import checkpoint
from orchestrator.config import Settings
from orchestrator.errors import AdbDown, DeviceSick, ServiceDown, SetupError, TransportLost
from workers.host_faults import is_of_host

from . import batch
from .base import ShellResult
from .quote import quote
from .server_watch import ServerWatch
from .sockets import connect_tcp, connect_unix
from .stream import ShellStream, Stream

FOLDER = "/data/local/tmp/pocketfarm"
CONNECT_S = 5.0
MAX_OUTPUT_BYTES = 64 << 20
"""A command that prints more than this is cut off: the host's memory is not the phone's to fill."""
_STDOUT, _STDERR, _EXIT, _CLOSE_STDIN = 1, 2, 3, 4
_CHUNK_BYTES = 64 << 10
"""Largest DATA of the sync protocol."""
_TAG = re.compile(r"\s+(?:usb|product|model|device|transport_id|features):\S*")


class ListedDevice(NamedTuple):
    """One row of the server's list."""

    address: str
    """What the server calls it: its USB serial number, or `host:port`."""
    state: str
    """`device`, `offline`, `unauthorized`, `no permissions (...)`, ..."""
    detail: str
    """`usb:2-1 model:...`: where it hangs and what it says it is."""


class _Socket(adbutils.AdbConnection):  # type: ignore[misc]
    """A connection to the adb server of which every read and write ends by one deadline."""

    def __init__(self, server: AdbServer, deadline_s: float) -> None:
        self._server, self._deadline_s = server, deadline_s
        self._ends_at = time.monotonic() + deadline_s
        self._held = bytearray()
        """What has come and was not asked for yet."""
        self.reads_ahead = False
        """Whatever comes is for this object, so that it takes few calls to read it."""
        super().__init__("127.0.0.1", server.port)

    def _safe_connect(self) -> Connection:
        """adbutils' own would start a server of its own version where none listens."""
        opened: Connection = self._server.open(self._deadline_s)
        return opened

    def _await(self) -> None:
        left_s = self._ends_at - time.monotonic()
        if left_s <= 0:
            raise TimeoutError("deadline")
        self.conn.settimeout(left_s)

    def _read_fully(self, n: int) -> bytes:
        while (missing := n - len(self._held)) > 0:
            self._await()
            most = max(missing, _CHUNK_BYTES) if self.reads_ahead else missing
            part = self.conn.recv(min(most, 1 << 20))
            if not part:
                raise EOFError(f"closed {missing} bytes before the end of a message")
            self._held += part
        taken = bytes(self._held[:n])
        del self._held[:n]
        return taken

    def write(self, data: bytes) -> None:
        self._await()
        self.conn.sendall(data)

    def request(self, service: str) -> None:
        """Ask for a service. Raises AdbError with the server's reason."""
        message = service.encode()
        self.write(b"%04x" % len(message) + message)
        self.check_okay()

    def close(self) -> None:
        self.conn.close()  # adbutils sleeps 10 ms here


_WENT_AWAY = (OSError, EOFError, ValueError, adbutils.AdbError)
"""What a lost peer or a garbled message looks like (an AdbTimeout is an AdbError)."""


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
        """Whether it was away a moment ago: who lost a phone then cannot blame the phone."""
        return self._watch.is_shaken

    @property
    def place(self) -> str:
        """Where it listens, for people."""
        return f"port {self.port}" if self.socket is None else str(self.socket)

    @property
    def command(self) -> str:
        """How a person's `adb` reaches this server."""
        if self.socket is None:
            return f"adb -P {self.port}"
        return f"ADB_SERVER_SOCKET=localfilesystem:{self.socket} adb"

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
            raise SetupError(f"what listens on {self.place} is no adb server: {e}", remedy=self._move()) from e
        if version != wanted:
            raise SetupError(
                f"the adb server on {self.place} has version {version}, {self.path} has {wanted}",
                remedy=self._move(),
            )
        return version

    def devices(self, *, deadline_s: float = 5.0) -> list[ListedDevice]:
        """Every device that the server lists now, usable or not. Raises ServiceDown."""
        return parse_devices(self._ask("host:devices-l", deadline_s))

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
            stream = _Socket(self, deadline_s)
            with stream:
                stream.request(service)
                return str(stream.read_string_block())
        except _WENT_AWAY as e:
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
    """Rows of `host:devices-l`: `%-22s STATE [usb:X] [product:X ...] [transport_id:N]`; a state may hold spaces.

    Phones that claim the same USB serial number are told apart by their port, which adb takes as an address too.
    """
    rows = []
    for line in listing.splitlines():
        address, _, rest = line.partition(" ")
        if address and rest.strip():
            tags = _TAG.findall(" " + rest)
            rows.append(ListedDevice(address, _TAG.sub("", " " + rest).strip(), " ".join(tag.strip() for tag in tags)))
    times = Counter(row.address for row in rows)
    return [row._replace(address=_port(row)) if times[row.address] > 1 else row for row in rows]


def _port(row: ListedDevice) -> str:
    """`usb:2-1`, where the row names it."""
    return next((tag for tag in row.detail.split() if tag.startswith("usb:")), row.address)


def over_network(address: str) -> bool:
    """Whether adb's server reaches a phone at `host:port`, and not over USB."""
    return ":" in address and not address.startswith("usb:")


class AdbConnection:
    """A phone by its adb address; implements `DeviceConnection`. Holds no stream between calls: it survives the cable.

    `serial`: what the farm calls it, where that is known.
    """

    folder = FOLDER

    def __init__(self, address: str, server: AdbServer, *, serial: str = "") -> None:
        self.address = address
        self.serial = serial or address
        self._server = server

    def shell(self, argv: Sequence[str], *, deadline_s: float = 10.0) -> ShellResult:
        return self._run(quote(argv), deadline_s)

    def shells(
        self, commands: Sequence[Sequence[str]], *, deadline_s: float = 10.0, guard: int | None = None
    ) -> list[ShellResult]:
        if not commands:
            return []
        mark = secrets.token_hex(8)
        found = batch.split(self._run(batch.script(commands, mark, guard), deadline_s), mark)
        if len(found) not in (len(commands), guard):
            raise DeviceSick(
                f"unreadable answer: {len(found)} of {len(commands)} commands ended: {quote(commands[0])[:200]}; ...",
                device=self.serial,
                remedy="restart the phone's adbd (replug it), then look at what it prints",
            )
        return found

    def _run(self, command: str, deadline_s: float) -> ShellResult:
        with self._service(f"shell,v2,raw:{command}", command, deadline_s) as stream:
            with suppress(BrokenPipeError, ConnectionResetError):  # it may have ended already: what it said is there
                stream.write(struct.pack("<BI", _CLOSE_STDIN, 0))
            return self._collect(stream, command)

    def stream(self, argv: Sequence[str], *, deadline_s: float = 10.0) -> Stream:
        command = quote(argv)
        with self._lost_in(command, deadline_s):
            opened = _Socket(self._server, deadline_s)
            try:
                opened.request(f"host:transport:{self.address}")
                opened.request(f"shell,v2,raw:{command}")
            except BaseException:
                opened.close()
                raise
        return ShellStream(opened.conn, self.serial)

    def push(self, source: Path, target: str, *, mode: int = 0o644, deadline_s: float = 120.0) -> None:
        with source.open("rb") as file, self._service("sync:", f"push {target}", deadline_s) as stream:
            try:
                stream.write(_sync(b"SEND", f"{target},{0o100000 | mode}".encode()))
                while chunk := file.read(_CHUNK_BYTES):
                    checkpoint()
                    stream.write(_sync(b"DATA", chunk))
                stream.write(b"DONE" + struct.pack("<I", int(time.time())))
            except (BrokenPipeError, ConnectionResetError):
                pass  # a phone that refuses says why and closes: its reason is still to be read
            self._sync_reply(stream, f"push {target}")

    def pull(self, source: str, target: Path, *, deadline_s: float = 120.0) -> None:
        with target.open("wb") as file, self._service("sync:", f"pull {source}", deadline_s) as stream:
            stream.write(_sync(b"RECV", source.encode()))
            while (bytes_ := self._sync_reply(stream, f"pull {source}")) is not None:
                file.write(stream.read_exact(bytes_))

    def reconnect(self) -> None:
        """A phone at `host:port` that left the list is connected again; USB phones, and those that the server itself
        tries again, come back by themselves."""
        if not over_network(self.address):
            return
        with suppress(ServiceDown, TransportLost):
            if all(row.address != self.address for row in self._server.devices()):
                self._server.connect(self.address)

    @contextmanager
    def _service(self, service: str, command: str, deadline_s: float) -> Iterator[_Socket]:
        """A stream to a service of the phone; whatever breaks it becomes TransportLost."""
        with self._lost_in(command, deadline_s), _Socket(self._server, deadline_s) as stream:
            stream.request(f"host:transport:{self.address}")
            stream.request(service)
            stream.reads_ahead = True
            yield stream

    @contextmanager
    def _lost_in(self, command: str, deadline_s: float) -> Iterator[None]:
        """Whatever breaks the connection becomes TransportLost."""
        try:
            yield
        except _WENT_AWAY as e:
            if is_of_host(e):
                raise
            late = isinstance(e, TimeoutError | adbutils.AdbTimeout)
            what = f"no end within {deadline_s:g} s" if late else f"{e or type(e).__name__}"
            said = f"connection lost in `{command[:200]}`: {what}"
            if self._server.is_shaken:
                remedy = "look at the log of this host's adb server"
                raise AdbDown(f"the adb server went away: {said}", device=self.serial, remedy=remedy) from e
            raise TransportLost(said, device=self.serial, remedy="check cable, hub and phone") from e

    def _collect(self, stream: _Socket, command: str) -> ShellResult:
        """Packets of shell v2 until the exit status; a stream that ends without one was cut."""
        streams: dict[int, list[bytes]] = {_STDOUT: [], _STDERR: []}
        total = 0
        while True:
            kind, size = struct.unpack("<BI", stream.read_exact(5))
            if kind not in (_STDOUT, _STDERR, _EXIT) or total + size > MAX_OUTPUT_BYTES:
                raise DeviceSick(
                    f"unreadable answer to `{command[:200]}`: packet {kind} of {size} bytes",
                    device=self.serial,
                    remedy="restart the phone's adbd (replug it), then look at what it prints",
                )
            content = stream.read_exact(size)
            if kind == _EXIT:
                return ShellResult(content[0] if content else 255, *(b"".join(streams[i]) for i in (_STDOUT, _STDERR)))
            streams[kind].append(content)
            total += size

    def _sync_reply(self, stream: _Socket, what: str) -> int | None:
        """Bytes of the DATA that follows; None after OKAY or DONE. Raises DeviceSick with the phone's reason."""
        kind, size = stream.read_exact(4), stream.read_uint32()
        if kind == b"DATA" and size <= _CHUNK_BYTES:
            return int(size)
        if kind in (b"OKAY", b"DONE"):
            return None
        if kind != b"FAIL":
            raise DeviceSick(f"{what}: unreadable reply {kind!r}", device=self.serial, remedy="replug the phone")
        reason = stream.read_exact(min(size, _CHUNK_BYTES)).decode(errors="replace")
        if "No space left" in reason:
            raise DeviceSick(f"storage full: {what}: {reason}", device=self.serial, remedy="free space on the phone")
        raise DeviceSick(f"{what}: {reason}", device=self.serial, remedy=f"look at the phone's {self.folder}")


def _sync(kind: bytes, content: bytes) -> bytes:
    return kind + struct.pack("<I", len(content)) + content
