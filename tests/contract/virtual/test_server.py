"""The process of the virtual phones: many phones, restarts, scripts, and nothing left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import adbutils
import psutil
import pytest

from tests.phones import start_phones
from tests.servers import adb_key
from tests.waiting import LIMIT_S

from .conftest import TMP, Adb, eventually

MANY = 50


def test_fifty_phones_answer_for_themselves(tmp_path: Path, adb_port: int) -> None:
    with start_phones(tmp_path, ["galaxy_s7", "pixel_7"], count=MANY) as many:
        client = adbutils.AdbClient(host="127.0.0.1", port=adb_port, socket_timeout=LIMIT_S)

        def name_of(serial: str) -> str:
            return client.device(serial).shell2("getprop ro.serialno", v2=True, timeout=LIMIT_S).stdout.strip()

        for serial in many.serials:  # one at a time: adb 29 dies of connects and disconnects that cross
            assert client.connect(serial).startswith("connected to")
        with ThreadPoolExecutor(8) as pool:
            names = list(pool.map(name_of, many.serials))
        for serial in many.serials:
            client.disconnect(serial)
        assert names == [phone.name for phone in many.phones]
        assert len(set(names)) == MANY


def test_a_restart_keeps_files_settings_charge_and_port(tmp_path: Path, adb_port: int) -> None:
    with start_phones(tmp_path, ["galaxy_s7"]) as first:
        adb = Adb(adb_port, first.serials[0])
        adb("connect", adb.serial)
        adb.shell(f"echo kept > {TMP}/kept; settings put global x y")
        before = adb.shell("cat /proc/sys/kernel/random/boot_id")
    assert not (tmp_path / "phones.json").exists()
    with start_phones(tmp_path, ["galaxy_s7"]) as second:
        assert second.serials == first.serials
        adb.connect()
        assert adb.shell(f"cat {TMP}/kept; settings get global x") == "kept\ny\n"
        assert adb.shell("cat /proc/sys/kernel/random/boot_id") != before
    adb("disconnect", adb.serial)


def inside(root: Path) -> list[int]:
    """Processes whose environment names this phone."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("POCKETFARM_SYSROOT") == str(root):
                found.append(process.pid)
        except (psutil.Error, OSError):
            continue
    return found


def has_ended(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_its_end_ends_what_runs_inside(tmp_path: Path, adb_port: int, number: int) -> None:
    """Nobody is there to do it after SIGKILL, so that the next start does."""
    with start_phones(tmp_path, ["nexus_5"]) as phones:
        (phone,) = phones.phones
        program = tmp_path / "program"
        program.write_text("#!/bin/sh\ntrap '' HUP TERM\nsleep 77\n")
        program.chmod(0o755)
        adb = Adb(adb_port, phone.serial)
        adb("connect", phone.serial)
        assert adb("push", str(program), f"{TMP}/program").returncode == 0
        adb.shell(f"nohup setsid {TMP}/program > /dev/null 2>&1 &")
        eventually(lambda: len(inside(phone.root)) == 2)
        os.kill(phones.pid, number)
        eventually(lambda: has_ended(phones.pid))
    if number == signal.SIGKILL:
        assert inside(phone.root)
        with start_phones(tmp_path, ["nexus_5"]):
            assert not inside(phone.root)
    eventually(lambda: not inside(phone.root))
    adb("disconnect", phone.serial)


def test_it_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    script = (
        "import sys, time; from pathlib import Path; from virtual_phones.launch import start_phones\n"
        f"key = Path({str(adb_key().with_suffix('.pub'))!r})\n"
        f"with start_phones(Path({str(tmp_path)!r}), ['nexus_5'], key=key) as phones:\n"
        "    print(phones.pid, flush=True); time.sleep(60)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert parent.stdout
    pid = int(parent.stdout.readline())
    parent.kill()
    parent.communicate()
    eventually(lambda: not (tmp_path / "phones.json").exists())
    eventually(lambda: has_ended(pid))


def test_a_fault_script_runs_by_itself(tmp_path: Path) -> None:
    script = tmp_path / "script.yaml"
    script.write_text(
        "- {at_s: 0.2, phone: virtual-nexus_5-0, do: {fault: hang}}\n"
        "- {at_s: 0.4, phone: virtual-galaxy_s7-0, do: {fault: freeze_gauge}}\n"
    )
    with start_phones(tmp_path / "state", ["nexus_5", "galaxy_s7"], script=script) as phones:

        def faults() -> list[list[str]]:
            return [phone.faults for phone in phones.control.phones()]

        eventually(lambda: faults() == [["hang"], ["freeze_gauge"]])


def test_time_can_run_faster_for_the_body(tmp_path: Path) -> None:
    with start_phones(tmp_path, ["nexus_6p"], speed=600) as phones:
        before = phones.phones[0].charge
        eventually(lambda: phones.control.phones()[0].skin_c > 27)
        eventually(lambda: phones.control.phones()[0].charge < before)


def test_wrong_arguments_are_refused_in_one_line(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "virtual_phones", "--state", str(tmp_path), "--phones", "nokia_3310"]
    command += ["--key", str(adb_key().with_suffix(".pub"))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 2
    assert done.stderr.startswith("error: no virtual phone profile 'nokia_3310'; there are: galaxy_s24")
    assert done.stderr.count("\n") == 1


def test_a_state_folder_has_one_server(tmp_path: Path) -> None:
    second = start_phones(tmp_path, ["nexus_5"])
    with start_phones(tmp_path, ["nexus_5"]) as phones:
        with pytest.raises(RuntimeError, match="in use"):
            second.__enter__()
        assert phones.control.phones()


def test_phones_json_says_where_everything_is(tmp_path: Path) -> None:
    with start_phones(tmp_path, ["nexus_5"]) as phones:
        document = json.loads((tmp_path / "phones.json").read_text())
        (phone,) = document["phones"]
        assert phone["serial"] == f"127.0.0.1:{phone['port']}"
        assert phone["profile"] == "nexus_5"
        assert (Path(phone["root"]) / "sys/class/power_supply/battery/current_now").is_file()
        assert document["pid"] == phones.pid
