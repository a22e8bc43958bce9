"""A private Redis: broker, leases and live state of this farm; its loss costs time only."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import subprocess
from pathlib import Path

import redis

from orchestrator.errors import SetupError
from orchestrator.private_files import make_private

from .part import Part, free_port

OLDEST = (6, 2)
"""XAUTOCLAIM and GETDEL came with 6.2."""
INSTALL = "sudo apt-get install redis-server"


def find() -> tuple[str, str]:
    """Absolute path and version of redis-server. Raises SetupError where there is none, or an old one."""
    path = shutil.which("redis-server")
    if path is None:
        raise SetupError("redis-server is not installed on this machine", remedy=INSTALL)
    answer = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=10, check=False).stdout
    match = re.search(r"v=(\d+)\.(\d+)(\S*)", answer)
    if match is None or (int(match[1]), int(match[2])) < OLDEST:
        wanted = ".".join(map(str, OLDEST))
        raise SetupError(f"{path}: version {wanted} or newer is needed, this says {answer.strip()!r}", remedy=INSTALL)
    return path, f"{match[1]}.{match[2]}{match[3]}"


class RedisServer:
    """Port, password and folder of the private Redis; the same for every restart."""

    def __init__(self, state: Path) -> None:
        self.path, self.version = find()
        self.folder = (state / "redis").absolute()
        self.port = free_port()
        self.password = secrets.token_urlsafe(24)

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def part(self) -> Part:
        return Part(
            name="redis",
            command=(self.path, str(self.folder / "redis.conf")),
            detail=f"127.0.0.1:{self.port}, version {self.version}",
            before_start=self._configure,
            is_ready=self._answers,
        )

    def _configure(self) -> None:
        """Write the configuration; the password is in no command line."""
        make_private(self.folder)
        lines = {
            "bind": "127.0.0.1",
            "port": self.port,
            "requirepass": self.password,
            "dir": f'"{self.folder}"',
            "appendonly": "yes",
            "appendfsync": "everysec",
            "save": '""',
            "maxmemory-policy": "noeviction",
            "daemonize": "no",
        }
        path = self.folder / "redis.conf"
        path.unlink(missing_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.writelines(f"{key} {value}\n" for key, value in lines.items())

    def _answers(self) -> bool:
        try:
            with redis.Redis(
                port=self.port, password=self.password, socket_timeout=0.5, socket_connect_timeout=0.5
            ) as client:
                return bool(client.ping())
        except redis.RedisError:
            return False
