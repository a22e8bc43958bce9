"""Outputs of phones and meters, each with its right value: `../shared/cases/farm-inputs`, F01 to F16."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.errors import Unsupported
from orchestrator.model.device import Health
from workers.connection.adb import AdbConnection, AdbServer, over_network, parse_devices
from workers.devices.lookup import unusable
from workers.session.conditions.airplane_mode import AirplaneMode

FOLDER = Path(__file__).parents[4] / "shared" / "cases" / "farm-inputs"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason=f"{FOLDER} is absent: the cases lie beside the checkout")


def text(name: str) -> str:
    return (FOLDER / name).read_text()


def test_f02_a_name_with_a_space() -> None:
    (row,) = parse_devices(text("F02_mdns_name_devices_l.txt"))
    assert row.address == "adb-0123456789ABCDEF-xYz012 (2)._adb-tls-connect._tcp"
    assert row.state == "device"


def test_f03_airplane_mode_by_address() -> None:
    for line in text("F03_addresses_airplane.txt").splitlines()[1:]:
        address, network, _ = line.rsplit(maxsplit=2)
        assert over_network(address) is (network == "yes")
        with pytest.raises(Exception) as caught:  # nothing answers: only a phone over a network is refused before that
            AirplaneMode().check(AdbConnection(address, AdbServer(1)))
        assert ("would cut the network" in str(caught.value)) is (network == "yes")
        assert isinstance(caught.value, Unsupported) is (network == "yes")


def test_f13_states_have_advice_of_their_own() -> None:
    rows = parse_devices(text("F13_states_devices_l.txt"))
    assert [row.state for row in rows] == ["authorizing", "connecting", "detached"]
    found = [unusable(row, AdbServer(5037)) for row in rows]
    assert [health for health, _ in found] == [Health.UNAUTHORIZED, Health.OFFLINE, Health.OFFLINE]
    for (_, advice), word in zip(found, ("accept", "wait", "attach"), strict=True):
        assert word in advice
        assert "start Android" not in advice
