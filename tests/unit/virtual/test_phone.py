"""The phone's body and files over time."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from virtual_phones.hardware.sysfs import NodeWriter
from virtual_phones.phone import Phone
from virtual_phones.profile import load_profile, profile_names
from virtual_phones.system.garbage import Garbler
from virtual_phones.system.processes import Process, ProcessTable

CURRENT = "sys/class/power_supply/battery/current_now"


def busy(seconds: float) -> list[Process]:
    return [Process(999_999, "pocketfarm-agent", seconds)]


def test_a_preopened_node_shows_new_values(phone: Phone) -> None:
    handle = os.open(phone.tree.root / CURRENT, os.O_RDONLY)
    try:
        phone.tick(1.0, busy(0.0))
        idle = int(os.pread(handle, 64, 0))
        cores = len(os.sched_getaffinity(0))
        phone.tick(1.0, busy(cores))
        loaded = int(os.pread(handle, 64, 0))
    finally:
        os.close(handle)
    assert loaded < idle < 0  # a Galaxy S7 counts discharging as negative
    assert loaded < -500_000


def test_load_is_the_share_of_the_host_s_cores(phone: Phone) -> None:
    cores = len(os.sched_getaffinity(0))
    phone.tick(1.0, busy(5.0))
    assert phone.body.load == 0.0  # what it had used before is not ours
    phone.tick(2.0, busy(5.0 + cores))
    assert phone.body.load == pytest.approx(0.5)
    phone.tick(1.0, [])
    assert phone.body.load == 0.0


def test_on_a_busy_host_the_load_is_what_the_processes_want(phone: Phone) -> None:
    """A thread that waits for a core of the host would run on the phone; it did not use the time that it waited."""
    cores = len(os.sched_getaffinity(0))

    def process(used_s: float, waited_s: float) -> list[Process]:
        return [Process(999_999, "pocketfarm-agent", used_s, waited_s)]

    phone.tick(1.0, process(0.0, 0.0))
    phone.tick(1.0, process(0.1 * cores, 0.9 * cores))
    assert phone.body.load == pytest.approx(1.0)
    used = phone.tree.read("/proc/stat").split()[1]
    assert int(used) == pytest.approx(10 * cores, abs=1)


def test_clocks_follow_load_and_throttling(phone: Phone) -> None:
    def clock() -> int:
        return int((phone.tree.root / "sys/devices/system/cpu/cpu3/cpufreq/scaling_cur_freq").read_text())

    cores = len(os.sched_getaffinity(0))
    phone.tick(1.0, busy(0.0))
    assert clock() == 307_200
    phone.tick(1.0, busy(cores))
    assert clock() == 2_150_400
    phone.heat_to(None, hold=True)
    phone.tick(1.0, busy(2 * cores))
    assert clock() == 2_150_400 // 2  # thermal status 3


def test_heat_that_is_not_held_goes_away(phone: Phone) -> None:
    phone.heat_to(50.0, hold=False)
    phone.tick(30.0, [])
    assert phone.body.skin_c < 50.0
    phone.heat_to(50.0, hold=True)
    phone.tick(30.0, [])
    assert phone.body.skin_c == 50.0


def test_denied_nodes_are_no_files(tmp_path: Path) -> None:
    phone = Phone(load_profile("sd888_hdk"), 0, tmp_path, ProcessTable(), None)
    assert not (phone.tree.root / CURRENT).exists()
    with pytest.raises(PermissionError):
        phone.tree.read(f"/{CURRENT}")
    assert phone.tree.denied_names("/sys/class/power_supply/battery") >= {"current_now"}


@pytest.mark.parametrize("name", profile_names())
def test_every_profile_makes_a_phone(tmp_path: Path, name: str) -> None:
    phone = Phone(load_profile(name), 3, tmp_path, ProcessTable(), None)
    phone.tick(1.0, [])
    assert phone.serial == f"virtual-{name}-3"
    assert phone.banner().startswith(b"device::ro.product.name=")
    assert b"shell_v2" in phone.banner()
    assert ":virtual/" in phone.properties["ro.build.fingerprint"]


def test_a_reboot_changes_the_boot_id_and_keeps_files_and_charge(phone: Phone) -> None:
    (phone.tree.root / "data/local/tmp/kept").write_text("kept")
    phone.set_charge(0.31)
    before, began = phone.boot_id, time.monotonic()
    phone.boot()
    assert phone.boot_id != before
    assert phone.tree.read("/proc/sys/kernel/random/boot_id").decode().strip() == phone.boot_id
    assert phone.tree.read("/data/local/tmp/kept") == b"kept"
    assert phone.body.charge == 0.31
    assert phone.uptime_s() <= time.monotonic() - began


def test_state_survives_and_a_broken_state_starts_anew(phone: Phone) -> None:
    phone.set_charge(0.25)
    phone.set_supply(plugged=True)
    phone.port = 4711
    phone.save()
    again = Phone(phone.profile, 0, phone.folder, phone.table, None)
    assert (again.body.charge, again.body.charging, again.port) == (0.25, True, 4711)
    (phone.folder / "state.json").write_text("{")
    assert Phone(phone.profile, 0, phone.folder, phone.table, None).body.charge == phone.profile.battery.level


def test_a_phone_of_an_older_farm_has_the_settings_that_came_later(phone: Phone) -> None:
    phone.settings["system"]["screen_brightness"] = "77"
    for more in ("", "x", "x" * 100, "", "x" * 10_000, "x", ""):
        phone.settings["secure"]["note"] = more
        phone.save()
        assert Phone(phone.profile, 0, phone.folder, phone.table, None).settings["secure"]["note"] == more
    del phone.settings["global"]["bluetooth_on"], phone.settings["secure"]
    phone.save()
    again = Phone(phone.profile, 0, phone.folder, phone.table, None)
    assert (again.settings["system"]["screen_brightness"], again.settings["global"]["bluetooth_on"]) == ("77", "1")
    assert again.settings["secure"] == {}


def test_nodes_are_rewritten_in_place_and_shrink(tmp_path: Path) -> None:
    writer = NodeWriter(tmp_path)
    writer.write({"/a/b": "-123456"})
    inode = (tmp_path / "a/b").stat().st_ino
    writer.write({"/a/b": "7"})
    assert (tmp_path / "a/b").read_text() == "7\n"
    assert (tmp_path / "a/b").stat().st_ino == inode


def test_garbage_has_the_length_and_the_lines_of_the_truth() -> None:
    truth = b'{"event":"hello"}\n{"event":"result"}\n'
    garbage = Garbler().spoil(truth)
    assert len(garbage) == len(truth)
    assert [i for i, byte in enumerate(garbage) if byte == 0x0A] == [i for i, byte in enumerate(truth) if byte == 0x0A]
    assert b"{" not in garbage


def test_it_knows_when_the_gauge_has_news(phone: Phone, monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = time.monotonic()
    monkeypatch.setattr("virtual_phones.phone.time.monotonic", lambda: now_s)
    period_s = phone.profile.gauge.refresh_ms / 1000
    phone.advance([])
    first, reading = phone.gauge_news_s(), phone.reading()
    assert 0 < first <= period_s
    phone.tick(first - 0.01, [])
    assert phone.reading() == reading
    phone.tick(0.02, [])
    assert phone.reading() != reading
    assert phone.gauge_news_s() == pytest.approx(period_s - 0.01, abs=0.02)
