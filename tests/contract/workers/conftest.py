"""One connection of each kind, in turn: this host, and a virtual phone behind a real adb server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from device_agent.virtual.launch import start_phones
from tests.servers import private_adb
from workers.device.adb import AdbConnection, AdbServer
from workers.device.base import DeviceConnection
from workers.device.local import LocalConnection


@pytest.fixture(scope="session")
def phone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AdbConnection]:
    """A virtual phone, connected."""
    folder = tmp_path_factory.mktemp("adb")
    with private_adb(folder) as port, start_phones(folder / "phones", ["galaxy_s7"]) as phones:
        server = AdbServer(port)
        server.connect(phones.serials[0])
        yield AdbConnection(phones.serials[0], server)


@pytest.fixture(params=["local", "adb"])
def connection(request: pytest.FixtureRequest, tmp_path: Path) -> DeviceConnection:
    if request.param == "local":
        return LocalConnection("local-test", tmp_path / "device")
    connected: DeviceConnection = request.getfixturevalue("phone")
    return connected
