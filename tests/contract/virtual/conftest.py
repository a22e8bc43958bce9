"""Virtual phones behind a real, private adb server."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.phones import mend, start_phones
from tests.servers import PrivateAdb, private_adb_server, required
from tests.waiting import LIMIT_S, eventually
from virtual_phones.control import ControlClient, PhoneStatus
from virtual_phones.launch import VirtualPhones

PROFILES = ("galaxy_s7", "nexus_5", "pixel_7", "sd888_hdk")
TMP = "/data/local/tmp"


class Adb:
    """The real adb command line against one server, and one phone where `serial` is given."""

    def __init__(self, port: int, serial: str = "") -> None:
        self.port = port
        self._command = [required("adb"), "-P", str(port), *(["-s", serial] if serial else [])]
        self.serial = serial

    def __call__(
        self, *arguments: str, stdin: bytes = b"", timeout_s: float = LIMIT_S
    ) -> subprocess.CompletedProcess[bytes]:
        """Run `adb ARGUMENTS`. Raises subprocess.TimeoutExpired."""
        environment = {**os.environ, "ANDROID_ADB_SERVER_PORT": str(self.port)}
        command = [*self._command, *arguments]
        return subprocess.run(command, input=stdin, capture_output=True, timeout=timeout_s, env=environment)

    def shell(self, script: str, *, timeout_s: float = LIMIT_S) -> str:
        """Output of a script that must succeed."""
        done = self("shell", script, timeout_s=timeout_s)
        assert done.returncode == 0, done
        return done.stdout.decode()

    def popen(self, *arguments: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen([*self._command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def connect(self, timeout_s: float = LIMIT_S) -> None:
        """Have the server connect anew, without its own 3 to 10 s between two tries; fails where it never does."""

        def connected() -> bool:
            if self.state() == "device" and self("shell", "true").returncode == 0:
                return True
            self("disconnect", self.serial)
            self("connect", self.serial)
            return False

        eventually(connected, timeout_s)

    def stay_awake(self) -> None:
        """Keep the phone awake as a session does: a detached program stands still on a phone that sleeps."""
        self.shell("settings put system screen_off_timeout 2147483647; input keyevent KEYCODE_WAKEUP")

    def state(self) -> str:
        """The state of the phone in `adb devices`; empty where it is not listed."""
        rows = (line.split("\t") for line in self("devices").stdout.decode().splitlines() if "\t" in line)
        return {row[0]: row[1] for row in rows}.get(self.serial, "")


@pytest.fixture(scope="session")
def running_adb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateAdb]:
    """Shared by all tests; ask for `adb_port`, behind which it is mended for each."""
    with private_adb_server(tmp_path_factory.mktemp("adb")) as server:
        yield server


@pytest.fixture
def adb_port(running_adb: PrivateAdb) -> int:
    running_adb.mend()
    return running_adb.port


@pytest.fixture(scope="session")
def running_phones(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VirtualPhones]:
    """Shared by all tests; ask for `phones`, which are mended for each."""
    folder = tmp_path_factory.mktemp("phones")
    with start_phones(folder, PROFILES, slot=folder / "slot") as running:
        yield running


@pytest.fixture
def phones(running_adb: PrivateAdb, running_phones: VirtualPhones) -> VirtualPhones:
    """One of each profile, connected and without a fault; nothing else is connected."""
    mend(running_adb, running_phones.control, running_phones.serials)
    return running_phones


@pytest.fixture
def control(phones: VirtualPhones) -> Iterator[ControlClient]:
    """The control socket; every fault is taken back after the test."""
    yield phones.control
    phones.control.clear()


@pytest.fixture
def phone(phones: VirtualPhones) -> PhoneStatus:
    """The Galaxy S7."""
    return phones.phones[0]


@pytest.fixture
def adb(adb_port: int, phone: PhoneStatus) -> Adb:
    """adb for the Galaxy S7, connected and idle."""
    return Adb(adb_port, phone.serial)


@pytest.fixture
def program(adb: Adb, phone: PhoneStatus, tmp_path: Path) -> Iterator[Callable[[str], str]]:
    """Push a shell script for the host to the phone as an executable; its phone path."""
    made: list[Path] = []

    def make(text: str, name: str = "program") -> str:
        script = tmp_path / "pushed" / name
        script.parent.mkdir(exist_ok=True)
        script.write_text(f"#!/bin/sh\n{text}\n")
        script.chmod(0o755)
        done = adb("push", str(script), f"{TMP}/{name}")
        assert done.returncode == 0, done
        made.append(phone.root / TMP.lstrip("/") / name)
        return f"{TMP}/{name}"

    yield make
    for path in made:
        path.unlink(missing_ok=True)
