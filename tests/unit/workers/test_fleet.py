"""The fleet between threads: who waits for whom, and what is announced."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from orchestrator.model.device import DeviceFacts, DeviceState, Health, Source
from orchestrator.model.errors import TransportLost
from workers.connection.local import LocalConnection
from workers.devices.fleet import MAX_DEFER_S, Fleet, Member

FACTS = DeviceFacts(serial="p", host="h", kind="phone", source=Source.PHONE, model="Pixel")
READY = DeviceState(health=Health.READY)


def member(folder: str = "/f", serial: str = "p", kind: str = "phone") -> Member:
    facts = FACTS.model_copy(update={"serial": serial, "kind": kind})
    return Member(LocalConnection(serial, Path(folder)), facts, "/agent")


def test_a_session_waits_for_the_enrolment() -> None:
    fleet = Fleet()
    threading.Timer(0.2, lambda: fleet.enrol(member(), READY)).start()
    assert fleet.member("p", wait_s=5.0).facts == FACTS


def test_what_cannot_be_used_is_not_waited_for() -> None:
    fleet = Fleet()
    fleet.set_state(FACTS, DeviceState(health=Health.OFFLINE, reason="replug it"))
    with pytest.raises(TransportLost, match="replug it"):
        fleet.member("p", wait_s=3600.0)  # a wait would end in the time limit of the test


def test_facts_outlive_a_bad_moment() -> None:
    fleet = Fleet()
    fleet.enrol(member(), READY)
    unknown = DeviceFacts(serial="p", host="h", kind="phone", source=Source.PHONE)
    fleet.set_state(unknown, DeviceState(health=Health.OFFLINE))
    (device,) = fleet.devices()
    assert (device.facts.model, device.state.health) == ("Pixel", Health.OFFLINE)


def test_a_deferred_device_stays_deferred_for_a_while() -> None:
    fleet = Fleet()
    fleet.enrol(member(), READY)
    fleet.defer("p", time.time() + 10_000, "battery at 10 %")
    fleet.set_state(FACTS, READY)
    (device,) = fleet.devices()
    assert device.state.reason == "battery at 10 %"
    assert device.state.ready_at is not None and device.state.ready_at <= time.time() + MAX_DEFER_S
    fleet.set_state(FACTS, DeviceState(health=Health.OFFLINE))
    assert fleet.devices()[0].state.ready_at is None


def test_the_end_of_an_old_session_leaves_the_new_one() -> None:
    fleet = Fleet()
    fleet.start("p", "a", 1, 7)
    fleet.start("p", "b", 1, 8)
    fleet.end("p", 7)
    assert fleet.running() == (("p", "b", 1, 8),)
    fleet.end("p", 8)
    assert fleet.running() == ()


def test_markers_tell_phones_by_serial_and_hosts_by_folder() -> None:
    assert member("/a").marker == member("/b").marker == "p/"
    here, there = member("/a", "local-cpu", "workstation"), member("/b", "local-cpu", "workstation")
    assert here.marker != there.marker
    assert not here.marker.startswith(there.marker) and not there.marker.startswith(here.marker)
