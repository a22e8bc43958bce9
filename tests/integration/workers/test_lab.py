"""Whatever a test leaves behind, the next one finds the lab whole: a failure spoils no other, nor its own rerun."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from virtual_phones.faults import Charging, Hang, Offline, Unauthorized, Unplug

from .conftest import Wiring


def unplugged(lab: Wiring) -> None:
    lab.phones.control.fault(lab.serial, Unplug())
    lab.disconnect()


def offline(lab: Wiring) -> None:
    lab.phones.control.fault(lab.serial, Offline())


def unauthorized(lab: Wiring) -> None:
    lab.phones.control.fault(lab.serial, Unauthorized())


def hung_and_charging(lab: Wiring) -> None:
    lab.phones.control.fault(lab.serial, Hang())
    lab.phones.control.fault(lab.serial, Charging())


def connected_twice(lab: Wiring) -> None:
    lab.server.connect(lab.address.replace("127.0.0.1", "localhost"))


def another_is_connected(lab: Wiring) -> None:
    lab.server.connect(lab.phones.serials[1])


@pytest.mark.parametrize(
    "spoil", [unplugged, offline, unauthorized, hung_and_charging, connected_twice, another_is_connected]
)
def test_a_spoilt_lab_is_mended(lab: Wiring, spoil: Callable[[Wiring], None]) -> None:
    spoil(lab)
    lab.mend()
    is_whole(lab)


def test_a_dead_adb_server_is_started_again_and_that_is_said(lab: Wiring) -> None:
    lab.adb.stop(kill=True)
    with pytest.warns(UserWarning, match=f"-P {lab.server.port} nodaemon server` had died and is started again"):
        lab.mend()
    is_whole(lab)


def is_whole(lab: Wiring) -> None:
    assert [(row.address, row.state) for row in lab.server.devices()] == [(lab.address, "device")]
    assert lab.connection.shell(["echo", "well"]).stdout == b"well\n"
    (phone,) = lab.phones.control.phones(lab.serial)
    assert (phone.faults, phone.charging) == ([], False)
