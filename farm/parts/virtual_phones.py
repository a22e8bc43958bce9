"""Virtual phones of this farm: one process, connected to the private adb server."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from orchestrator.system.private_files import make_private

from .adb_server import AdbServer
from .part import Part

PROFILES = ("galaxy_s7", "nexus_5", "pixel_7", "sd888_hdk")
"""The profiles that `farm up --virtual N` takes, in turn."""


def profiles_for(count: int, named: Sequence[str]) -> list[str]:
    """Profiles of the phones: those named, then the four usual ones in turn until there are `count`."""
    usual = [PROFILES[i % len(PROFILES)] for i in range(max(0, count - len(named)))]
    return [*named, *usual]


class VirtualPhones:
    """The process of all virtual phones, and their connections."""

    def __init__(self, state: Path, adb: AdbServer, profiles: Sequence[str], owner: str = "") -> None:
        """`owner`: the host, where it is one of several: in the phones' serials."""
        self._owner = owner
        self._folder = (state / "virtual").absolute()
        self._adb = adb
        self._profiles = tuple(profiles)
        self._slot = (state / "engine.slot").absolute()
        self._connected: list[str] = []

    def part(self) -> Part:
        return Part(
            name="phones",
            command=(
                sys.executable,
                "-m",
                "virtual_phones",
                "--state",
                str(self._folder),
                "--key",
                str(self._adb.key.with_suffix(".pub")),
                "--phones",
                ",".join(self._profiles),
                "--slot",
                str(self._slot),
                *(("--owner", self._owner) if self._owner else ()),
            ),
            detail=f"{len(self._profiles)} virtual: {', '.join(self._profiles)}",
            before_start=self._forget,
            is_ready=lambda: len(self.addresses()) == len(self._profiles),
            after_ready=self._connect,
            ready_limit_s=60.0 + 0.2 * len(self._profiles),
        )

    def _forget(self) -> None:
        """The ports of an earlier run are nobody's, or somebody else's, now."""
        make_private(self._folder)
        self._file.unlink(missing_ok=True)
        for address in self._connected:
            self._adb.disconnect(address)
        self._connected = []

    def _connect(self) -> None:
        self._connected = self.addresses()
        self.reconnect()

    def reconnect(self) -> None:
        """Have the adb server connect to every phone again, after a restart of the server. Raises ServiceDown."""
        for address in self._connected:
            self._adb.connect(address)

    @property
    def _file(self) -> Path:
        return self._folder / "phones.json"

    def addresses(self) -> list[str]:
        """Addresses that the phones listen on; empty until they do."""
        try:
            found = json.loads(self._file.read_text())
        except (OSError, ValueError):
            return []
        return [f"127.0.0.1:{phone['port']}" for phone in found["phones"]]
