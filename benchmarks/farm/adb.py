"""A private adb server for benchmarks, ended with its block."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path


def free_port() -> int:
    """A loopback port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def adb_server(home: Path) -> Iterator[tuple[int, int]]:
    """A private adb server; its port and pid."""
    binary, port = shutil.which("adb"), free_port()
    if binary is None:
        sys.exit("error: adb is not installed (apt-get install adb)")
    quiet = {"ADB_USB": "0", "ADB_MDNS": "0", "ADB_EMU": "0", "HOME": str(home), "ANDROID_ADB_SERVER_PORT": str(port)}
    with (home / "adb.log").open("wb") as log:
        command = [binary, "-P", str(port), "nodaemon", "server"]
        process = subprocess.Popen(command, env={**os.environ, **quiet}, stdout=log, stderr=log)
    try:
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                break
            time.sleep(0.02)
        yield port, process.pid
    finally:
        process.terminate()
        process.wait(10)


def exactly(file: object, size: int) -> bytes:
    """`size` bytes, or EOFError."""
    data: bytes = file.read(size)  # type: ignore[attr-defined]
    if len(data) < size:
        raise EOFError("the adb server closed the connection")
    return data


@contextlib.contextmanager
def service(port: int, *requests: str) -> Iterator[tuple[socket.socket, object]]:
    """A smart-socket connection that has made its requests."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as sock, sock.makefile("rb") as file:
        for request in requests:
            sock.sendall(f"{len(request):04x}{request}".encode())
            if exactly(file, 4) != b"OKAY":
                raise RuntimeError(f"{request}: {exactly(file, int(exactly(file, 4), 16)).decode()}")
        yield sock, file


def connect(port: int, serial: str) -> str:
    """The adb server's reply, or what went wrong instead of one."""
    try:
        with service(port, f"host:connect:{serial}") as (_, file):
            return exactly(file, int(exactly(file, 4), 16)).decode()
    except (OSError, EOFError, RuntimeError) as error:
        return f"{serial}: {error}"
