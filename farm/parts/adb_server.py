"""The adb server of this host: the machine's own for real phones, or the farm's private one.

Whoever reaches an adb server may run commands on its phones: it asks nobody who he is. A virtual phone runs programs on
this machine with the farm's rights, so virtual phones trust the private server alone (its key never leaves the state
folder), and that one listens on a unix socket in a folder of this user's.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import socket
import tempfile
from pathlib import Path

from orchestrator.model.errors import ServiceDown, SetupError
from orchestrator.system.config import Settings
from orchestrator.system.private_files import make_private
from workers.connection.sockets import connect_unix

from .part import Part, nothing, said_by

INSTALL = "sudo apt-get install adb"
TIMEOUT_S = 15.0
"""A connect to a mute phone takes the server 10 s."""


def find(settings: Settings) -> str:
    """Absolute path of the adb binary. Raises SetupError."""
    path = shutil.which(settings.adb_path or "adb")
    if path is None:
        raise SetupError(f"{settings.adb_path or 'adb'} is not installed on this machine", remedy=INSTALL)
    return str(Path(path).absolute())


def client_version(path: str) -> int:
    """Protocol version of a binary, e.g. 41; servers of another version get replaced by it. Raises SetupError."""
    answer = said_by(path, "version")
    match = re.search(r"version \d+\.\d+\.(\d+)", answer)
    if match is None:
        raise SetupError(f"{path} version: cannot be understood: {answer.strip()[:200]!r}", remedy=INSTALL)
    return int(match[1])


def ask(place: int | Path, request: str, timeout_s: float = TIMEOUT_S) -> str:
    """Send one host request to the adb server on a port or unix socket; its answer. Raises ServiceDown where none
    answers there."""
    where = f"port {place}" if isinstance(place, int) else str(place)
    try:
        with _connect(place, timeout_s) as client:
            client.settimeout(timeout_s)
            client.sendall(f"{len(request):04x}{request}".encode())
            file = client.makefile("rb")
            status = file.read(4)
            text = file.read(int(file.read(4) or b"0", 16)).decode(errors="replace")
    except (OSError, ValueError) as e:
        raise ServiceDown(f"no adb server answers on {where}: {e}", remedy="farm doctor") from e
    if status != b"OKAY":
        raise ServiceDown(f"adb server on {where} refused {request!r}: {text or status!r}", remedy="farm doctor")
    return text


def _connect(place: int | Path, timeout_s: float) -> socket.socket:
    if isinstance(place, int):
        return socket.create_connection(("127.0.0.1", place), timeout=timeout_s)
    return connect_unix(place, timeout_s)


def server_version(place: int | Path) -> int | None:
    """Protocol version of the server on a port or unix socket; None where none answers."""
    try:
        return int(ask(place, "host:version", timeout_s=1.0), 16)
    except (ServiceDown, ValueError):
        return None


class AdbServer:
    """The adb server that this farm uses, which may be ours to start.

    `real`: for the phones of this machine's USB and network; `virtual`: for virtual ones.
    """

    def __init__(self, settings: Settings, *, real: bool, virtual: bool) -> None:
        self.path = find(settings)
        self.version = client_version(self.path)
        self.port = settings.adb_port
        self.real, self.virtual = real, virtual
        self._home = (settings.state / "adb-home").absolute()
        self.socket = socket_path(self._home, "adb.sock") if virtual else settings.adb_socket
        self.key = self._home / ".android" / "adbkey"

    @property
    def place(self) -> int | Path:
        """Port, or path of the unix socket."""
        return self.socket or self.port

    def part(self) -> Part | None:
        """The server to start; None where one of the same version runs already. Raises SetupError for another one, and
        where a running one holds the real phones of a farm that has virtual ones, too."""
        running = server_version(self.place) if not self.virtual else server_version(self.port) if self.real else None
        if running is not None and self.virtual:
            raise SetupError(
                f"an adb server runs on port {self.port} and holds the real phones; virtual phones need the farm's "
                "private one, and a host has one",
                remedy=f"end it (`adb -P {self.port} kill-server`), or start real and virtual phones as two farms",
            )
        if running == self.version:
            return None
        if running is not None:
            raise SetupError(
                f"the adb server on {self._where} has version {running}, {self.path} has {self.version}",
                remedy=f"end it with the adb that started it (`adb -P {self.port} kill-server`), or name that adb in "
                "FARM_ADB_PATH, or give another port in FARM_ADB_PORT",
            )
        listens = ("-P", str(self.port)) if self.socket is None else ("-L", f"localfilesystem:{self.socket}")
        kinds = ", virtual phones only" if not self.real else ", real and virtual phones" if self.virtual else ""
        return Part(
            name="adb",
            command=(self.path, *listens, "nodaemon", "server"),
            detail=f"{self._where}, protocol {self.version}{kinds}",
            environment=self._environment(),
            before_start=self._prepare if self.virtual else nothing,
            is_ready=lambda: server_version(self.place) is not None,
        )

    @property
    def _where(self) -> str:
        return f"port {self.port}" if self.socket is None else str(self.socket)

    def _prepare(self) -> None:
        """The folders, and the key that virtual phones trust. Raises SetupError."""
        assert self.socket is not None
        for folder in (self._home, self.key.parent, self.socket.parent):
            try:
                make_private(folder)
            except OSError as e:
                remedy = f"see whose it is: ls -ld {folder}"
                raise SetupError(f"{folder} cannot be used: {e.strerror}", remedy=remedy) from e
        if not (self.key.is_file() and self.key.with_suffix(".pub").is_file()):
            said = said_by(self.path, "keygen", str(self.key)).strip()[-300:]
            if not self.key.is_file():
                raise SetupError(f"`adb keygen {self.key}` failed: {said}", remedy=INSTALL)

    def _environment(self) -> dict[str, str]:
        """The private one's key lies in a HOME of its own; real phones know the user's key already."""
        if not self.virtual:
            return {"ANDROID_ADB_SERVER_PORT": str(self.port)}
        own = {"HOME": str(self._home), "ADB_MDNS": "0", "ADB_EMU": "0"}
        if not self.real:
            return {**own, "ADB_USB": "0"}
        users = [os.environ.get("ADB_VENDOR_KEYS", ""), str(Path.home() / ".android" / "adbkey")]
        return {**own, "ADB_VENDOR_KEYS": os.pathsep.join(filter(os.path.exists, filter(None, users)))}

    def connect(self, address: str) -> None:
        """Have the server connect to a phone over TCP. Raises ServiceDown."""
        answer = ask(self.place, f"host:connect:{address}")
        if not answer.startswith(("connected to", "already connected")):
            raise ServiceDown(f"adb could not connect to {address}: {answer}", device=address)

    def disconnect(self, address: str) -> None:
        """Forget a phone over TCP, known or not."""
        try:
            ask(self.place, f"host:disconnect:{address}")
        except ServiceDown:
            return  # it was not connected: as wanted


LIMIT = 100
"""Bytes; the kernel takes 107."""


def socket_path(folder: Path, name: str) -> Path:
    """Return a socket's path: in the folder, or, where that is too long for the kernel, in one under the machine's
    temporary folder, the same every time; whoever makes the socket makes that folder private."""
    path = folder / name
    if len(os.fsencode(path)) <= LIMIT:
        return path
    mark = hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
    return Path(tempfile.gettempdir(), f"pocketfarm-{os.getuid()}-{mark}", name)
