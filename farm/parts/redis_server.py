"""A private Redis: broker, leases and live state of this farm; its loss costs time only."""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import redis

from orchestrator.coordination import access
from orchestrator.model.errors import ServiceDown, SetupError
from orchestrator.system.private_files import make_private

from .part import Part, free_port, said_by

if TYPE_CHECKING:
    from farm.reach import Reach

OLDEST = (7, 0)
"""Access lists with selectors and keys that may only be read came with 7.0."""
MEMORY_SHARE = 4
"""The divisor of the machine's memory: Redis may use a quarter. Then it takes nothing new, and forgets nothing."""
VALUE_BYTES = 48 << 20
"""The longest value that it takes: a record has a few megabytes."""
INSTALL = "sudo apt-get install redis-server"


def find() -> tuple[str, str]:
    """Absolute path and version of redis-server. Raises SetupError where there is none, or an old one."""
    path = shutil.which("redis-server")
    if path is None:
        raise SetupError("redis-server is not installed on this machine", remedy=INSTALL)
    answer = said_by(path, "--version")
    match = re.search(r"v=(\d+)\.(\d+)(\S*)", answer)
    if match is None or (int(match[1]), int(match[2])) < OLDEST:
        wanted = ".".join(map(str, OLDEST))
        raise SetupError(f"{path}: version {wanted} or newer is needed, this says {answer.strip()!r}", remedy=INSTALL)
    return path, f"{match[1]}.{match[2]}{match[3]}"


Secrets = Callable[[], Mapping[str, str]]
"""SHA-256 of the secret of each host that has one."""


class RedisServer:
    """Port, password and folder of the private Redis; the same for every restart.

    `reach`: other machines reach it too, by TLS alone. `host_secrets`: asked at every start; where it raises
    ServiceDown, the users are those of the last start.
    """

    def __init__(self, state: Path, reach: Reach | None = None, host_secrets: Secrets = dict) -> None:
        self.path, self.version = find()
        self.folder = (state / "redis").absolute()
        self.reach, self._secrets = reach, host_secrets
        self.port = reach.redis_port if reach else free_port()
        self.password = secrets.token_urlsafe(24)

    @property
    def url(self) -> str:
        """The URL for the parts on this machine."""
        return f"redis{'s' * bool(self.reach)}://127.0.0.1:{self.port}/0"

    @property
    def ca(self) -> Path | None:
        return self.reach.authority.certificate if self.reach else None

    def client(self) -> redis.Redis:
        """One that waits half a second."""
        trusted = {"ssl_ca_certs": str(self.ca)} if self.ca else {}
        return redis.Redis.from_url(
            self.url, password=self.password, socket_timeout=0.5, socket_connect_timeout=0.5, **trusted
        )

    def part(self) -> Part:
        listens = f"{self.reach.address}:{self.port} (TLS)" if self.reach else f"127.0.0.1:{self.port}"
        return Part(
            name="redis",
            command=(self.path, str(self.folder / "redis.conf")),
            detail=f"{listens}, version {self.version}",
            before_start=self._configure,
            is_ready=self._answers,
        )

    def _configure(self) -> None:
        """Write configuration and users; no password is in a command line, nor readable by others."""
        make_private(self.folder)
        users = self.folder / "users.acl"
        lines = {
            "bind": "127.0.0.1",
            "port": self.port,
            "dir": f'"{self.folder}"',
            "aclfile": f'"{users}"',
            "appendonly": "yes",
            "appendfsync": "everysec",
            "save": '""',
            "maxmemory": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // MEMORY_SHARE,
            "maxmemory-policy": "noeviction",
            "proto-max-bulk-len": VALUE_BYTES,
            "client-query-buffer-limit": 4 * VALUE_BYTES,
            "daemonize": "no",
            **self._encrypted(),
        }
        _write(users, access.users(hashlib.sha256(self.password.encode()).hexdigest(), self._known_hosts()))
        _write(self.folder / "redis.conf", "".join(f"{key} {value}\n" for key, value in lines.items()))

    def _encrypted(self) -> dict[str, str | int]:
        if self.reach is None:
            return {}
        own = self.reach.certificate()
        return {
            "bind": " ".join(dict.fromkeys(("127.0.0.1", self.reach.bind))),
            "port": 0,
            "tls-port": self.port,
            "tls-cert-file": f'"{own.certificate}"',
            "tls-key-file": f'"{own.key}"',
            "tls-ca-cert-file": f'"{self.ca}"',
            "tls-auth-clients": "no",
            "tls-protocols": '"TLSv1.2 TLSv1.3"',
        }

    def _known_hosts(self) -> dict[str, str]:
        """Return the hosts' secrets from the ledger; where that is away, those of the last start."""
        kept = self.folder / "hosts.json"
        try:
            found = dict(self._secrets())
            _write(kept, json.dumps(found))
        except ServiceDown:
            found = json.loads(kept.read_text()) if kept.exists() else {}
        return found

    def _answers(self) -> bool:
        try:
            with self.client() as client:
                return bool(client.ping())
        except (redis.RedisError, OSError):
            return False


def _write(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
