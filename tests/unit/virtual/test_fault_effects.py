"""Effects of faults on a phone's clocks, supply and files, without a transport."""

from __future__ import annotations

import asyncio
import errno
import subprocess
import sys
from pathlib import Path

import pytest

from virtual_phones.adb.cable import Cable
from virtual_phones.adb.key import PublicKey
from virtual_phones.control.client import PhoneStatus, Request
from virtual_phones.control.injector import FaultInjector
from virtual_phones.control.listener import Controlled, answer
from virtual_phones.faults import (
    BackgroundLoad,
    Charging,
    ClockCap,
    Fault,
    StorageFull,
    Supply,
    Throttle,
)
from virtual_phones.phone import Phone

from .conftest import Sh

CPU = "sys/devices/system/cpu/cpufreq/policy2"
KGSL = "sys/class/kgsl/kgsl-3d0/devfreq"


def _cable(phone: Phone) -> Cable:
    return Cable(lambda _: None, phone.banner, PublicKey(modulus=3, exponent=3))


def after(phone: Phone, *faults: Fault, clear: bool = False) -> PhoneStatus:
    """The phone's status after these faults, which must change its nodes at once."""

    async def go() -> PhoneStatus:
        injector = FaultInjector(phone, _cable(phone))
        for fault in faults:
            await injector.apply(fault)
        if clear:
            await injector.clear()
        return Controlled(phone, injector).status()

    return asyncio.run(go())


def node(phone: Phone, path: str) -> int:
    return int((phone.tree.root / path).read_text())


def test_a_clock_cap_is_seen_in_the_limits_and_in_the_speed(phone: Phone) -> None:
    status = after(phone, ClockCap(share=0.6))
    assert node(phone, f"{CPU}/scaling_max_freq") == round(0.6 * 2_150_400)
    assert node(phone, f"{KGSL}/max_freq") == 315_000_000
    assert status.cpu_cap_khz == [round(0.6 * 1_593_600), round(0.6 * 2_150_400)]
    assert status.running == status.clock == pytest.approx(0.6, abs=1e-3)
    assert (status.faults, status.thermal_status) == (["clock_cap"], 0)
    after(phone, ClockCap(share=0.6), clear=True)
    assert node(phone, f"{CPU}/scaling_max_freq") == 2_150_400


def test_throttling_shows_as_heat_does(phone: Phone, sh: Sh) -> None:
    phone.profile = phone.profile.model_copy(update={"sdk": 33})
    status = after(phone, Throttle(share=0.5))
    assert (status.thermal_status, status.clock) == (3, 0.5)
    assert "Thermal Status: 3\n" in sh("dumpsys thermalservice").out
    assert node(phone, f"{CPU}/scaling_max_freq") == 2_150_400 // 2
    assert after(phone, Throttle(share=0.5), clear=True).thermal_status == 0


def test_a_hidden_throttle_shows_in_speed_and_clock_alone(phone: Phone) -> None:
    status = after(phone, Throttle(share=0.5, visible=False))
    assert (status.thermal_status, status.running) == (0, 0.5)
    assert node(phone, f"{CPU}/scaling_max_freq") == 2_150_400
    phone.other_load = 0.5
    phone.tick(1.0, [])
    assert node(phone, f"{CPU}/scaling_cur_freq") == 2_150_400 // 2


def test_a_background_load_takes_its_share(phone: Phone) -> None:
    status = after(phone, BackgroundLoad(share=0.4))
    assert (status.background, status.running) == (0.4, 0.6)
    phone.tick(1.0, [])
    assert phone.body.device_w > phone.profile.power.idle_w
    assert after(phone, BackgroundLoad(), clear=True).running == 1.0


def test_a_cut_port_stops_charging_until_it_is_restored(phone: Phone) -> None:
    assert after(phone, Charging(on=True)).charging
    cut = after(phone, Supply(on=False))
    assert (cut.charging, cut.plugged, cut.faults) == (False, True, ["supply"])
    assert not after(phone, Charging(on=True)).charging, "a charger at a dead port changes nothing"
    restored = after(phone, Supply(on=True))
    assert (restored.charging, restored.faults) == (True, [])
    assert after(phone, Supply(on=False), clear=True).charging


def test_no_room_is_felt_by_programs_that_run_already(phone: Phone) -> None:
    path = phone.tree.root / "data/local/tmp/journal"
    code = (
        "import sys\n"
        f"file = open({str(path)!r}, 'ab', buffering=0)\n"
        "for _ in sys.stdin:\n"
        "    try:\n        print(file.write(bytes(1 << 16)), flush=True)\n"
        "    except OSError as error:\n        print(-error.errno, flush=True)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", code],
        env={"POCKETFARM_SYSROOT": str(phone.tree.root)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    )

    def write() -> int:
        assert process.stdin and process.stdout
        process.stdin.write("go\n")
        return int(process.stdout.readline())

    with process:
        assert write() == 1 << 16
        after(phone, StorageFull())
        assert write() == -errno.EFBIG
        after(phone, StorageFull(), clear=True)
        assert write() == 1 << 16
        process.kill()
    assert path.stat().st_size == 2 << 16


def test_a_program_that_starts_when_it_is_full_feels_it_too(phone: Phone, sh: Sh, tmp_path: Path) -> None:
    program = phone.tree.root / "data/local/tmp/program"
    program.write_text('#!/bin/sh\nsleep 0.2; echo text > "$1"; echo "$?"\n')
    program.chmod(0o755)
    phone.pushed.note(program)
    assert sh("/data/local/tmp/program /data/local/tmp/a").out == "0\n"
    phone.tree.full = True
    assert sh("/data/local/tmp/program /data/local/tmp/b").out != "0\n"
    assert (phone.tree.root / "data/local/tmp/b").read_bytes() == b""


def test_the_truth_is_integrated_up_to_the_moment_of_the_answer(phone: Phone) -> None:
    async def ask() -> tuple[PhoneStatus, PhoneStatus]:
        entries = [
            Controlled(
                phone, FaultInjector(phone, Cable(lambda _: None, phone.banner, PublicKey(modulus=3, exponent=3)))
            )
        ]
        line = Request(do="truth", phone=phone.serial).model_dump_json().encode()
        first = await answer(line, entries)
        await asyncio.sleep(0.2)
        second = await answer(line, entries)
        return first.phones[0], second.phones[0]

    first, second = asyncio.run(ask())
    took_s = (second.t_ns - first.t_ns) / 1e9
    assert took_s >= 0.2
    assert second.consumed_j - first.consumed_j == pytest.approx(phone.profile.power.idle_w * took_s, rel=1e-3)
    assert second.chemical_j - first.chemical_j == pytest.approx(
        second.consumed_j - first.consumed_j + second.battery_loss_j - first.battery_loss_j, rel=1e-6
    )
