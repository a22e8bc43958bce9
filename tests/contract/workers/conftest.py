"""One connection of each kind, in turn: this host, and a virtual phone behind a real adb server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.phones import mend, start_phones
from tests.servers import PrivateAdb, private_adb_server
from virtual_phones.launch import VirtualPhones
from workers.connection.adb import AdbConnection, AdbServer
from workers.connection.base import DeviceConnection
from workers.connection.local import LocalConnection


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[PrivateAdb, VirtualPhones]]:
    """Shared by all tests; ask for `phone`, which is mended for each."""
    folder = tmp_path_factory.mktemp("adb")
    with private_adb_server(folder) as adb, start_phones(folder / "phones", ["galaxy_s7"]) as phones:
        yield adb, phones


@pytest.fixture
def phone(running: tuple[PrivateAdb, VirtualPhones]) -> AdbConnection:
    """A virtual phone, connected."""
    adb, phones = running
    mend(adb, phones.control, phones.serials)
    return AdbConnection(phones.serials[0], AdbServer(adb.port))


@pytest.fixture(params=["local", "adb"])
def connection(request: pytest.FixtureRequest, tmp_path: Path) -> DeviceConnection:
    if request.param == "local":
        return LocalConnection("local-test", tmp_path / "device")
    connected: DeviceConnection = request.getfixturevalue("phone")
    return connected
