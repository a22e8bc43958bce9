"""Devices come and go on a real adb server."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

import pytest

from orchestrator.ledger import blame
from orchestrator.model.device import Api, Device, Health, Source
from orchestrator.model.errors import Unsupported
from orchestrator.model.experiment import Conditions
from orchestrator.model.record import Outcome
from orchestrator.system.config import Settings
from tests.phones import start_phones
from tests.waiting import LIMIT_S
from virtual_phones.faults import Unauthorized, Unplug
from workers.connection.adb import AdbConnection, AdbServer
from workers.devices.admit import enrol_phone
from workers.devices.device_lock import device_lock
from workers.devices.fleet import Fleet
from workers.devices.lookup import find_phone
from workers.devices.workstation import CPU_SERIAL
from workers.discovery.crash_recovery import left_changed, let_be, with_left_changed
from workers.discovery.watch import Discovery
from workers.engines import Engines, Host
from workers.execution.run_job import Workbench, run_job
from workers.session.saved_settings import SavedSettings

from .conftest import Wiring
from .jobs import assignment_of


class Watch:
    """A discovery that is driven by hand."""

    made: ClassVar[list[Watch]] = []

    def __init__(self, settings: Settings, server: AdbServer) -> None:
        self.fleet = Fleet()
        self.discovery = Discovery(self.fleet, settings, server)
        self.made.append(self)

    def until(self, what: Callable[[dict[str, Device]], bool], limit_s: float = LIMIT_S) -> dict[str, Device]:
        end = time.monotonic() + limit_s
        while time.monotonic() < end:
            self.discovery.tick()
            devices = {device.serial: device for device in self.fleet.devices()}
            if what(devices):
                return devices
            time.sleep(0.1)
        raise AssertionError(f"not within {limit_s} s: {self.fleet.devices()}")

    def phones(self) -> set[str]:
        return {device.serial for device in self.fleet.devices() if device.facts.kind == "phone"}

    def is_known(self, address: str) -> bool:
        """Return whether the phone that is connected at this address has been asked who it is."""
        watched = self.discovery._watched.get(address)
        return watched is not None and (watched.name is not None or watched.stands_by)

    def health(self, serial: str, health: Health, reason: str = "", limit_s: float = LIMIT_S) -> Device:
        """Wait until a device is in this state for this reason: on its way there it may pass through others."""

        def reached(devices: dict[str, Device]) -> bool:
            found = devices.get(serial)
            return found is not None and found.state.health == health and reason in found.state.reason

        return self.until(reached, limit_s)[serial]

    def end(self) -> None:
        """Returns when none of its threads is at work on a phone: the next test's may be the same."""
        self.discovery._pool.shutdown(wait=True, cancel_futures=True)


@pytest.fixture(autouse=True)
def _watches(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Impatient ones, which end with the test."""
    monkeypatch.setattr("workers.discovery.watch.ANNOUNCE_S", 0.2)
    yield
    while Watch.made:
        Watch.made.pop().end()


@contextmanager
def disconnected(lab: Wiring) -> Iterator[None]:
    """The phone's usual connection is gone."""
    lab.disconnect()
    try:
        yield
    finally:
        lab.connect()


def test_what_a_phone_lacks_is_told_when_it_is_first_seen(lab: Wiring, lab_settings: Settings, tmp_path: Path) -> None:
    profiles = {
        "old": 'android: "6.0.1"\nsdk: 23\n',
        "bare": "lacks: [settings, dumpsys]\n",
        "empty": "lacks: [grep]\n",
    }
    for name, text in profiles.items():
        (tmp_path / f"{name}.yaml").write_text(f"extends: nexus_5\nname: {name}\n{text}")
    watch = Watch(lab_settings, lab.server)
    with start_phones(tmp_path / "phones", [str(tmp_path / f"{name}.yaml") for name in profiles]) as phones:
        for address in phones.serials:
            lab.server.connect(address)
        bare = watch.health("virtual-bare-0", Health.READY)
        assert set(bare.facts.tools_missing) == {"settings", "dumpsys"}
        watch.health("virtual-empty-0", Health.SICK, "the phone has no `grep`")
        old = phones.serials[0]  # which cannot be asked what it is called
        assert "cable" not in watch.health(old, Health.SICK, "no shell v2").state.reason
        assert watch.discovery._watched[old].due_at == float("inf"), "it stays so until another phone is there"
        for address in phones.serials:
            lab.server.disconnect(address)


def test_a_phone_and_this_host_are_enrolled(lab: Wiring, lab_settings: Settings) -> None:
    watch = Watch(lab_settings, lab.server)
    phone = watch.health(lab.serial, Health.READY)
    assert (phone.facts.source, phone.facts.profile) == (Source.VIRTUAL, "galaxy_s7")
    assert (phone.serial, phone.facts.address) == ("virtual-galaxy_s7-0", lab.address)
    assert (phone.facts.model, phone.facts.soc, phone.facts.gpu) == ("SM-G930V", "Snapdragon 820", "Adreno (TM) 530")
    assert phone.facts.gpu_vendor == "adreno"
    assert {api.api for api in phone.facts.apis} >= {Api.OPENCL, Api.CPU}
    assert phone.facts.memory_bytes > 3 << 30 and phone.facts.boot_id and phone.facts.sdk == 26
    assert phone.state.battery_percent is not None and 0 < phone.state.battery_percent <= 100
    assert phone.state.battery_temp_c is not None
    assert phone.state.thermal_status is None, "Android 8 has no thermalservice"
    assert phone.state.free_storage_bytes is not None and phone.state.free_storage_bytes > 1 << 30
    reading = phone.state.reading
    assert reading is not None and reading.current_raw and 3.0 < (reading.voltage_v or 0.0) < 4.5
    assert reading.battery_health == "Good" and phone.state.clock_off_s is None and not phone.state.adb_losses
    assert reading.status in ("Charging", "Discharging", "Full", "Not charging")
    assert 10**8 < (reading.cpu_hz or 0) < 10**10
    assert reading.gpu_hz is None, "this phone's shell may not read it"
    host = watch.health(CPU_SERIAL, Health.READY)
    assert host.facts.source == Source.WORKSTATION and host.facts.api(Api.CPU)
    assert watch.discovery.adb.startswith("version 41 on port")


def test_unplugged_and_back(lab: Wiring, lab_settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.discovery.watch.RETRY_S", 0.5)
    watch = Watch(lab_settings, lab.server)
    ready = watch.health(lab.serial, Health.READY)
    lab.phones.control.fault(lab.serial, Unplug())
    watch.health(lab.serial, Health.OFFLINE)
    lab.disconnect()  # as adb's server does when it has tried for a minute
    away = watch.health(lab.serial, Health.OFFLINE, "no longer connected")
    assert away.facts == ready.facts, "it is still known as what it is"
    assert watch.phones() == {lab.serial}
    lab.phones.control.clear()
    assert watch.health(lab.serial, Health.READY).state.adb_losses >= 1


def test_the_adb_server_dies_and_is_started_again(lab: Wiring, lab_settings: Settings) -> None:
    watch = Watch(lab_settings, lab.server)
    ready = watch.health(lab.serial, Health.READY)
    lab.adb.stop(kill=True)
    away = watch.health(lab.serial, Health.OFFLINE, "start-server")
    assert away.facts == ready.facts and "start it" in watch.discovery.adb
    lab.adb.start()
    lab.connect()
    watch.health(lab.serial, Health.READY)
    assert watch.discovery.adb.startswith("version 41 on port")


def test_a_phone_that_stays_away_is_forgotten(
    lab: Wiring, lab_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.discovery.watch.GONE_S", 0.5)
    watch = Watch(lab_settings, lab.server)
    watch.health(lab.serial, Health.READY)
    with disconnected(lab):
        watch.health(lab.serial, Health.OFFLINE)
        watch.until(lambda all_: lab.serial not in all_)
    watch.health(lab.serial, Health.READY)


def test_an_unauthorized_phone_says_what_to_do(lab: Wiring, lab_settings: Settings) -> None:
    watch = Watch(lab_settings, lab.server)
    watch.health(lab.serial, Health.READY)
    lab.phones.control.fault(lab.serial, Unauthorized())
    known = watch.health(lab.serial, Health.UNAUTHORIZED, "accept")
    assert known.facts.source == Source.VIRTUAL
    Watch(lab_settings, lab.server).health(lab.address, Health.UNAUTHORIZED, "accept")
    lab.phones.control.clear()
    lab.connect()
    watch.health(lab.serial, Health.READY)


def test_a_phone_that_is_connected_twice_is_one_device(lab: Wiring, lab_settings: Settings) -> None:
    watch = Watch(lab_settings, lab.server)
    second = lab.address.replace("127.0.0.1", "localhost")
    assert watch.health(lab.serial, Health.READY).facts.address == lab.address
    lab.server.connect(second)
    try:
        watch.until(lambda _: watch.is_known(second))
        assert watch.phones() == {lab.serial}
        with disconnected(lab):
            watch.until(lambda all_: all_[lab.serial].facts.address == second)
            assert watch.health(lab.serial, Health.READY).facts.source == Source.VIRTUAL
        watch.until(lambda _: watch.is_known(lab.address))
        assert watch.health(lab.serial, Health.READY).facts.address == second, "it is in use now"
    finally:
        lab.server.disconnect(second)
    watch.until(lambda all_: all_[lab.serial].facts.address == lab.address)


def test_two_phones_with_one_serial_number_are_two_devices(lab: Wiring, lab_settings: Settings, tmp_path: Path) -> None:
    watch = Watch(lab_settings, lab.server)
    watch.health(lab.serial, Health.READY)
    with start_phones(tmp_path / "twin", ["galaxy_s7"]) as twins:
        (address,) = twins.serials
        assert twins.phones[0].name == lab.serial
        lab.server.connect(address)
        try:
            twin = watch.health(address, Health.READY)
            assert f"the phone at {lab.address} has the same serial number" in twin.state.reason
            assert watch.health(lab.serial, Health.READY).facts.address == lab.address
            with pytest.raises(Unsupported, match="2 phones"):
                find_phone(lab.serial, lab.server)
        finally:
            lab.server.disconnect(address)


def test_no_adb_server_leaves_the_host_usable(settings: Settings) -> None:
    watch = Watch(settings, AdbServer(1, settings.adb_path))
    watch.health(CPU_SERIAL, Health.READY)
    assert "port 1" in watch.discovery.adb and "start it" in watch.discovery.adb


def test_without_an_agent_the_reason_is_told(lab: Wiring, lab_settings: Settings) -> None:
    without = lab_settings.model_copy(update={"agent_dir": lab_settings.state / "nothing"})
    sick = Watch(without, lab.server).health(lab.serial, Health.SICK)
    assert "build it" in sick.state.reason
    assert sick.facts.source is Source.VIRTUAL


def test_a_phone_in_a_session_is_left_alone(lab: Wiring, lab_settings: Settings) -> None:
    watch = Watch(lab_settings, lab.server)
    with device_lock(lab_settings.state, lab.serial):
        watch.until(lambda all_: CPU_SERIAL in all_)
        with pytest.raises(AssertionError):
            watch.health(lab.serial, Health.READY, limit_s=1.0)
    watch.health(lab.serial, Health.READY)


def brightness(lab: Wiring) -> str:
    return lab.connection.shell(["settings", "get", "system", "screen_brightness"]).stdout.decode().strip()


def test_what_a_crashed_session_left_is_put_back_without_another_job(
    lab: Wiring, lab_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.discovery.watch.REFRESH_S", 0.2)
    lab.connection.shell(["settings", "put", "system", "screen_brightness", "77"])
    watch = Watch(lab_settings, lab.server)

    def crash() -> None:
        with device_lock(lab_settings.state, lab.serial, wait_s=LIMIT_S):
            SavedSettings(lab_settings.state, lab.connection).prepare(Conditions(screen_dimmed=True))
        assert left_changed(lab_settings.state) == {lab.serial: ("awake", "screen")}

    crash()
    assert brightness(lab) == "1"
    watch.health(lab.serial, Health.READY)
    assert brightness(lab) == "77" and left_changed(lab_settings.state) == {}
    watch.discovery._is_taken = lambda _: True
    crash()  # of a phone that is known, and that another host has now
    with pytest.raises(AssertionError):
        watch.until(lambda _: not left_changed(lab_settings.state), limit_s=1.0)
    watch.discovery._is_taken = lambda _: False
    watch.until(lambda _: not left_changed(lab_settings.state))
    assert brightness(lab) == "77"


def test_a_phone_that_cannot_be_put_back_is_sick_and_its_jobs_pay_nothing(
    lab: Wiring, lab_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.discovery.watch.REFRESH_S", 0.2)
    watch = Watch(lab_settings, lab.server)
    watch.health(lab.serial, Health.READY)
    lab.connection.shell(["settings", "put", "system", "screen_brightness", "77"])
    lowest = "/sys/devices/system/cpu/cpufreq/policy0/scaling_min_freq"
    with device_lock(lab_settings.state, lab.serial, wait_s=LIMIT_S):
        saved = SavedSettings(lab_settings.state, lab.connection)
        saved.prepare(Conditions(screen_dimmed=True))
        saved._write({**saved.pending(), "locked_clocks": {lowest: "300000"}})  # and root is gone since
    sick = watch.health(lab.serial, Health.SICK, "needs root")
    assert f"farm restore {lab.serial}" in sick.state.reason and f"farm release {lab.serial}" in sick.state.reason
    assert brightness(lab) == "77", "what could be put back was"
    (shown,) = with_left_changed([sick], lab_settings.state, ())
    assert shown.state.left_changed == ("locked_clocks",)
    (busy,) = with_left_changed([sick], lab_settings.state, {lab.serial})
    assert busy.state.left_changed == ()
    bench = Workbench(lab_settings, watch.fleet, Engines(Host.alone(lab_settings.state)), "w")
    made = assignment_of(lab.serial, {"warmup": 0, "samples": 1})
    watch.discovery._watched[lab.address].due_at = float("inf")  # the session alone
    record = run_job(made, bench, lambda: None, lambda *_: None)
    assert (record.outcome, record.cause) == (Outcome.LOST, "settings_left")
    assert {"settings_left", "journal_unreadable"} <= blame.NOT_THE_JOB
    watch.discovery._watched[lab.address].due_at = 0.0
    assert let_be(lab_settings.state, lab.serial) and not let_be(lab_settings.state, lab.serial)
    watch.health(lab.serial, Health.READY)


def test_the_agent_is_sent_once(lab: Wiring, lab_settings: Settings) -> None:
    class Counting(AdbConnection):
        pushed = 0

        def push(self, *args: object, **options: object) -> None:
            Counting.pushed += 1
            super().push(*args, **options)  # type: ignore[arg-type]

    connection = Counting(lab.address, lab.server, serial=lab.serial)
    first, _ = enrol_phone(connection, lab_settings)
    sent = Counting.pushed
    second, _ = enrol_phone(connection, lab_settings)
    assert Counting.pushed == sent and first.agent == second.agent
    connection.shell(["sh", "-c", f"echo broken > {first.agent}"])
    enrol_phone(connection, lab_settings)
    assert Counting.pushed == sent + 1
