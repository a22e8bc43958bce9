"""Each fault as adb sees it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.waiting import LIMIT_S
from virtual_phones.control import ControlClient, PhoneStatus
from virtual_phones.control.__main__ import main
from virtual_phones.faults import (
    BatteryLevel,
    Charging,
    FreezeGauge,
    Garbage,
    Hang,
    KillAgent,
    Offline,
    Reboot,
    Slow,
    StorageFull,
    ThermalTrip,
    Unauthorized,
    Unplug,
)

from .conftest import TMP, Adb, eventually

CURRENT = "/sys/class/power_supply/battery/current_now"


def test_unplugged_it_is_gone_and_what_runs_inside_goes_on(
    adb: Adb, control: ControlClient, phone: PhoneStatus, program: Callable[[str], str]
) -> None:
    path = program("i=0; while [ $i -lt 100000 ]; do i=$((i+1)); echo $i; sleep 0.1; done > $1")
    adb.shell(f"nohup setsid {path} {TMP}/count > /dev/null 2>&1 &")
    talking = adb.popen("shell", program("echo up; sleep 600", "talker"))
    assert talking.stdout and talking.stdout.readline() == b"up\n"
    control.fault(phone.name, Unplug())
    talking.communicate(timeout=LIMIT_S)  # it ends; adb's exit status does not tell (0 in version 29)
    eventually(lambda: adb.state() != "device")
    assert b"cannot connect" in (reply := adb("connect", phone.serial)).stdout or b"failed" in reply.stdout
    count = phone.root / TMP.lstrip("/") / "count"
    before = len(count.read_text().split())
    eventually(lambda: len(count.read_text().split()) > before + 3)
    control.clear(phone.name)
    adb.connect()
    assert int(adb.shell(f"tail -n 1 {TMP}/count")) >= before
    control.fault(phone.name, KillAgent())


def test_an_unplugged_phone_comes_back_by_itself(adb: Adb, control: ControlClient, phone: PhoneStatus) -> None:
    control.fault(phone.serial, Unplug(seconds=0.5))
    assert adb("shell", "true").returncode != 0 or control.phones(phone.name)[0].faults == []
    eventually(lambda: control.phones(phone.name)[0].faults == [])
    adb.connect()
    assert adb.shell("echo back") == "back\n"


def test_a_hung_phone_stays_listed_and_answers_nothing(adb: Adb, control: ControlClient, phone: PhoneStatus) -> None:
    control.fault(phone.name, Hang())
    with pytest.raises(subprocess.TimeoutExpired):
        adb("shell", "echo a", timeout_s=1.0)
    assert adb.state() == "device"
    control.clear(phone.name)
    assert adb.shell("echo b") == "b\n"


def test_a_hung_phone_blocks_no_other(adb_port: int, control: ControlClient, phone: PhoneStatus, adb: Adb) -> None:
    control.fault(phone.name, Hang())
    other = Adb(adb_port, control.phones()[1].serial)
    assert other.shell("getprop ro.product.device") == "hammerhead\n"
    assert control.phones(phone.name)[0].faults == ["hang"]


def test_a_slow_cable(adb: Adb, control: ControlClient, phone: PhoneStatus, tmp_path: Path) -> None:
    control.fault(phone.name, Slow(factor=1000))
    start = time.monotonic()
    adb.shell("true")
    assert time.monotonic() - start > 2.0  # at least open, exit status and their answers, a second each


def test_offline(adb: Adb, control: ControlClient, phone: PhoneStatus) -> None:
    control.fault(phone.name, Offline())
    eventually(lambda: adb.state() == "offline")
    control.clear(phone.name)
    adb.connect()


def test_unauthorized_until_the_person_accepts(adb: Adb, control: ControlClient, phone: PhoneStatus) -> None:
    control.fault(phone.name, Unauthorized())
    eventually(lambda: adb("connect", phone.serial) is not None and adb.state() == "unauthorized")
    done = adb("shell", "true")
    assert done.returncode == 1
    assert b"unauthorized" in done.stderr
    control.clear(phone.name)
    eventually(lambda: adb.state() == "device")


def boot_id_of(adb: Adb) -> str:
    """Empty where the phone is away."""
    adb.connect()
    return adb("shell", "cat /proc/sys/kernel/random/boot_id").stdout.decode()


def test_reboot_ends_all_processes_and_changes_the_boot_id(
    adb: Adb, control: ControlClient, phone: PhoneStatus, program: Callable[[str], str]
) -> None:
    boot_id = adb.shell("cat /proc/sys/kernel/random/boot_id")
    path = program("trap '' HUP; sleep 50")
    adb.shell(f"nohup setsid {path} > /dev/null 2>&1 &")
    eventually(lambda: "program" in adb.shell("ps -A -o ARGS"))
    before = time.monotonic()
    control.fault(phone.name, Reboot(seconds=0.5))
    eventually(lambda: boot_id_of(adb) not in ("", boot_id))
    assert "program" not in adb.shell("ps -A -o ARGS")
    assert float(adb.shell("cat /proc/uptime").split()[0]) < time.monotonic() - before


def test_full_storage(adb: Adb, control: ControlClient, phone: PhoneStatus, tmp_path: Path) -> None:
    control.fault(phone.name, StorageFull())
    (tmp_path / "x").write_bytes(bytes(300_000))
    done = adb("push", str(tmp_path / "x"), f"{TMP}/x")
    assert done.returncode == 1
    assert b"No space left on device" in done.stdout + done.stderr
    assert adb("shell", f"ls {TMP}/x").returncode == 1
    assert int(adb.shell(f"df -k {TMP}").splitlines()[1].split()[3]) == 0
    control.clear(phone.name)
    assert adb("push", str(tmp_path / "x"), f"{TMP}/x").returncode == 0
    adb.shell(f"rm {TMP}/x")


def test_the_low_memory_killer(
    adb: Adb, control: ControlClient, phone: PhoneStatus, program: Callable[[str], str]
) -> None:
    process = adb.popen("shell", program("echo up; sleep 60"))
    assert process.stdout
    process.stdout.readline()
    control.fault(phone.name, KillAgent())
    assert process.wait(LIMIT_S) == 0x80 | signal.SIGKILL
    process.communicate()


def test_a_thermal_trip_is_seen_and_cools(adb_port: int, control: ControlClient) -> None:
    pixel = next(phone for phone in control.phones() if phone.profile == "pixel_7")
    adb = Adb(adb_port, pixel.serial)
    control.fault(pixel.name, ThermalTrip(temp_c=24.0))
    assert "Thermal Status: 0" in adb.shell("dumpsys thermalservice")
    control.fault(pixel.name, ThermalTrip(seconds=300))
    assert "Thermal Status: 3" in adb.shell("dumpsys thermalservice")
    eventually(lambda: int(adb.shell("cat /sys/class/thermal/thermal_zone2/temp")) >= 45_000)
    control.clear(pixel.name)
    control.fault(pixel.name, ThermalTrip(temp_c=24.0))
    assert "Thermal Status: 0" in adb.shell("dumpsys thermalservice")


def test_garbage_from_the_agent_but_not_from_the_phone(
    adb: Adb, control: ControlClient, phone: PhoneStatus, program: Callable[[str], str]
) -> None:
    path = program('echo \'{"event": "hello"}\' | tee "$2"')
    command = f"{path} --journal {TMP}/journal"
    assert json.loads(adb.shell(command)) == {"event": "hello"}
    control.fault(phone.name, Garbage())
    for script in (command, f"cat {TMP}/journal", f"tail -c +1 {TMP}/journal"):
        spoilt = adb("shell", script).stdout
        assert spoilt.endswith(b"\n")
        assert b"{" not in spoilt
    assert adb.shell("echo sound") == "sound\n"
    control.clear(phone.name)
    assert json.loads(adb.shell(f"cat {TMP}/journal")) == {"event": "hello"}


def test_a_frozen_gauge(adb: Adb, control: ControlClient, phone: PhoneStatus) -> None:
    seen: set[str] = set()

    def look() -> int:
        seen.add(adb.shell(f"cat {CURRENT}"))
        return len(seen)

    eventually(lambda: look() > 1)
    control.fault(phone.name, FreezeGauge())
    time.sleep(0.2)
    seen.clear()
    for _ in range(5):
        look()
        time.sleep(0.3)  # an idle phone's gauge is read once a second
    assert len(seen) == 1


def test_charging_and_charge(adb: Adb, control: ControlClient, phone: PhoneStatus) -> None:
    assert "USB powered: false" in adb.shell("dumpsys battery")
    control.fault(phone.name, Charging(on=True))
    control.fault(phone.name, BatteryLevel(level=0.11))
    eventually(lambda: int(adb.shell(f"cat {CURRENT}")) > 0)  # this phone counts charging as positive
    battery = adb.shell("dumpsys battery")
    assert "USB powered: true" in battery
    assert "level: 11\n" in battery
    assert "status: 2\n" in battery
    control.fault(phone.name, Charging(on=False))
    control.fault(phone.name, BatteryLevel(level=0.7))


def test_the_phone_s_own_reboot_command(adb: Adb, phone: PhoneStatus) -> None:
    boot_id = adb.shell("cat /proc/sys/kernel/random/boot_id")
    adb("reboot")
    eventually(lambda: boot_id_of(adb) not in ("", boot_id))


def test_the_control_command_line(
    control: ControlClient, phone: PhoneStatus, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [sys.executable, "-m", "virtual_phones.control", str(control.path), phone.name]
    done = subprocess.run(
        [*command, "fault", "hang", "--seconds", "300"], capture_output=True, timeout=LIMIT_S, check=True
    )
    (status,) = json.loads(done.stdout)
    assert (status["name"], status["faults"]) == (phone.name, ["hang"])
    assert main([str(control.path), phone.serial, "clear"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["faults"] == []
    assert main([str(control.path), phone.name, "fault", "explode"]) == 1
    assert "explode" in capsys.readouterr().err
    with pytest.raises(ValueError, match="no phone 'nobody'"):
        control.clear("nobody")
