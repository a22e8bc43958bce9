"""The adb server of this host: a private one for virtual phones, or the machine's own for real ones."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
from pathlib import Path

from orchestrator.config import Settings
from orchestrator.errors import ServiceDown, SetupError

from .part import Part, free_port

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
    answer = subprocess.run([path, "version"], capture_output=True, text=True, timeout=10, check=False).stdout
    match = re.search(r"version \d+\.\d+\.(\d+)", answer)
    if match is None:
        raise SetupError(f"{path} version: cannot be understood: {answer.strip()[:200]!r}", remedy=INSTALL)
    return int(match[1])


def ask(port: int, request: str, timeout_s: float = TIMEOUT_S) -> str:
    """Send one host request to an adb server; its answer. Raises ServiceDown where none answers there."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=timeout_s) as client:
            client.settimeout(timeout_s)
            client.sendall(f"{len(request):04x}{request}".encode())
            file = client.makefile("rb")
            status = file.read(4)
            text = file.read(int(file.read(4) or b"0", 16)).decode(errors="replace")
    except (OSError, ValueError) as e:
        raise ServiceDown(f"no adb server answers on port {port}: {e}", remedy="farm doctor") from e
    if status != b"OKAY":
        raise ServiceDown(f"adb server on port {port} refused {request!r}: {text or status!r}", remedy="farm doctor")
    return text


def server_version(port: int) -> int | None:
    """Protocol version of the server on a port; None where none answers."""
    try:
        return int(ask(port, "host:version", timeout_s=1.0), 16)
    except (ServiceDown, ValueError):
        return None


class AdbServer:
    """Which server this farm uses, and whether it is ours to start."""

    def __init__(self, settings: Settings, *, virtual_only: bool) -> None:
        self.path = find(settings)
        self.virtual_only = virtual_only
        self.port = free_port() if virtual_only else settings.adb_port
        self._home = (settings.state / "adb-home").absolute()
        self.version = client_version(self.path)

    def part(self) -> Part | None:
        """The server to start; None where one of the same version runs already. Raises SetupError for another one."""
        running = None if self.virtual_only else server_version(self.port)
        if running == self.version:
            return None
        if running is not None:
            raise SetupError(
                f"the adb server on port {self.port} has version {running}, {self.path} has {self.version}",
                remedy=f"end it with the adb that started it (`adb -P {self.port} kill-server`), or name that adb in "
                "FARM_ADB_PATH, or give another port in FARM_ADB_PORT",
            )
        return Part(
            name="adb",
            command=(self.path, "-P", str(self.port), "nodaemon", "server"),
            detail=f"port {self.port}, protocol {self.version}" + (", virtual phones only" * self.virtual_only),
            environment=self._environment(),
            before_start=lambda: self._home.mkdir(parents=True, exist_ok=True),
            is_ready=lambda: server_version(self.port) is not None,
        )

    def _environment(self) -> dict[str, str]:
        port = {"ANDROID_ADB_SERVER_PORT": str(self.port)}
        if not self.virtual_only:
            return port
        return {**port, "HOME": str(self._home), "ADB_USB": "0", "ADB_MDNS": "0", "ADB_EMU": "0"}

    def connect(self, address: str) -> None:
        """Have the server connect to a phone over TCP. Raises ServiceDown."""
        answer = ask(self.port, f"host:connect:{address}")
        if not answer.startswith(("connected to", "already connected")):
            raise ServiceDown(f"adb could not connect to {address}: {answer}", device=address)

    def disconnect(self, address: str) -> None:
        """Forget a phone over TCP, known or not."""
        try:
            ask(self.port, f"host:disconnect:{address}")
        except ServiceDown:
            return  # it was not connected: as wanted
