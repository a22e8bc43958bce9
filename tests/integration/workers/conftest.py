"""A lab: a real adb server, virtual phones behind it, and settings with a state folder per test."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from device_agent.build import binary
from device_agent.virtual.launch import VirtualPhones, start_phones
from orchestrator.config import Settings
from tests.servers import private_adb, required
from workers.device.adb import AdbConnection, AdbServer


@dataclass(frozen=True)
class Lab:
    server: AdbServer
    phones: VirtualPhones

    @property
    def serial(self) -> str:
        """What the farm calls the phone."""
        return self.phones.phones[0].name

    @property
    def address(self) -> str:
        """What the adb server calls it."""
        return self.phones.phones[0].serial

    @property
    def connection(self) -> AdbConnection:
        return AdbConnection(self.address, self.server, serial=self.serial)


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A virtual Galaxy S7, connected; and a Pixel 7, which tells its heat, for tests that connect it."""
    folder = tmp_path_factory.mktemp("lab")
    with pytest.MonkeyPatch.context() as environment:
        # Phones share this host's cache, so that PoCL builds a kernel once.
        environment.setenv("POCL_CACHE_DIR", os.environ.get("POCL_CACHE_DIR", str(Path.home() / ".cache/pocl/kcache")))
        with private_adb(folder) as port, start_phones(folder / "phones", ["galaxy_s7", "pixel_7"]) as phones:
            server = AdbServer(port, required("adb"))
            server.connect(phones.serials[0])
            yield Lab(server, phones)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Of a farm without phones: its adb port is nobody's."""
    assert binary().is_file(), "build the agent first: python -m device_agent.build"
    return Settings(state=tmp_path / "state", host="testhost", adb_port=1, adb_path=required("adb"))


@pytest.fixture
def lab_settings(settings: Settings, lab: Lab) -> Iterator[Settings]:
    """With the lab's phones; whatever faults a test leaves are cleared."""
    yield settings.model_copy(update={"adb_port": lab.server.port})
    lab.phones.control.clear()
