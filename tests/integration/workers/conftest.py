"""A lab: a real adb server, virtual phones behind it, and settings with a state folder per test."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from device_agent.build import binary
from orchestrator.system.config import Settings
from tests import phones as mending
from tests.phones import start_phones
from tests.servers import PrivateAdb, private_adb_server, required
from virtual_phones.launch import VirtualPhones
from workers.connection.adb import FOLDER, AdbConnection, AdbServer
from workers.engines import Engines, Host
from workers.engines.packaged import PackagedEngine
from workers.session import owner
from workers.session.saved_settings import ON_PHONE


@dataclass(frozen=True)
class Wiring:
    server: AdbServer
    phones: VirtualPhones
    adb: PrivateAdb
    """The process of `server`."""

    @property
    def serial(self) -> str:
        """The farm's name for the phone."""
        return self.phones.phones[0].name

    @property
    def address(self) -> str:
        """The adb server's name for it."""
        return self.phones.phones[0].serial

    @property
    def connection(self) -> AdbConnection:
        return AdbConnection(self.address, self.server, serial=self.serial)

    def connect(self) -> None:
        """Returns once the phone answers, whatever its connection was before."""
        mending.connect(self.server, self.address)

    def disconnect(self) -> None:
        """Returns once the phone is no longer listed."""
        mending.disconnect(self.server, self.address)

    def mend(self) -> None:
        """Undo whatever a test left: a dead server, faults, claims, runs, a phone that is away, others connected."""
        mending.mend(self.adb, self.phones.control, [self.address])
        left = (owner.FOLDER, ON_PHONE, "runs")  # by a host that a test has killed
        self.connection.shell(["rm", "-rf", *(f"{FOLDER}/{name}" for name in left)])


@pytest.fixture(scope="session")
def running_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wiring]:
    """The adb server and the phones, shared by all tests; ask for `lab`, which is mended for each."""
    folder = tmp_path_factory.mktemp("lab")
    with private_adb_server(folder) as adb, start_phones(folder / "phones", ["galaxy_s7", "pixel_7"]) as phones:
        yield Wiring(AdbServer(adb.port, required("adb")), phones, adb)


@pytest.fixture
def lab(running_lab: Wiring) -> Wiring:
    """A virtual Galaxy S7, connected; and a Pixel 7, which tells its heat, for tests that connect it."""
    running_lab.mend()
    return running_lab


def installed(state: Path, *names: str) -> Path:
    """A state folder whose host has these engines; their packages are kept beside the tests' own, for the next run."""
    state.mkdir(parents=True, exist_ok=True)
    kept = Path(sys.prefix, "engines")
    kept.mkdir(exist_ok=True)
    (state / "engines").symlink_to(kept)
    for engine in Engines(Host.alone(state)):
        if isinstance(engine, PackagedEngine) and engine.name in names:
            engine.environment.install("--no-compile")  # of all their modules tests import few
    return state


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """The settings of a farm without phones: its adb port is nobody's."""
    assert binary().is_file(), "build the agent first: python -m device_agent.build"
    return Settings(state=tmp_path / "state", host="testhost", adb_port=1, adb_path=required("adb"))


@pytest.fixture
def lab_settings(settings: Settings, lab: Wiring) -> Iterator[Settings]:
    """The settings with the lab's phones; whatever faults a test leaves are cleared."""
    yield settings.model_copy(update={"adb_port": lab.server.port})
    lab.phones.control.clear()
