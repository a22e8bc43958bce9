"""/proc/stat, power rails and the GPU's memory, as an agent or the shell user finds them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from virtual_phones.hardware.processor_time import HOST_CORES
from virtual_phones.phone import Phone
from virtual_phones.profile import load_profile
from virtual_phones.system.processes import Process, ProcessTable

from .conftest import Sh

RAIL = re.compile(r"CH(\d+)\(T=(\d+)\)\[(\w+)\], (\d+)")


def busy(seconds: float) -> list[Process]:
    return [Process(999_999, "pocketfarm-agent", seconds)]


def jiffies(phone: Phone) -> tuple[int, int]:
    """Busy and idle jiffies of all cores, as a program reads them."""
    name, *fields = (phone.tree.root / "proc/stat").read_text().splitlines()[0].split()
    assert name == "cpu"
    assert len(fields) == 10
    return sum(map(int, fields)) - int(fields[3]), int(fields[3])


def test_proc_stat_counts_the_phone_s_own_processes(phone: Phone) -> None:
    phone.tick(1.0, busy(5.0))
    before = jiffies(phone)
    phone.tick(2.0, busy(6.0))
    after = jiffies(phone)
    assert after[0] - before[0] == 100
    assert after[1] - before[1] == 200 * HOST_CORES - 100


def test_proc_stat_shows_a_background_load_that_is_nobody_s(phone: Phone) -> None:
    phone.tick(1.0, busy(0.0))
    before, phone.other_load = jiffies(phone), 0.25
    phone.tick(4.0, busy(0.0))
    after = jiffies(phone)
    assert after[0] - before[0] == 100 * HOST_CORES
    assert phone.body.load == pytest.approx(0.25)
    assert phone.running_share == pytest.approx(0.75)


def test_proc_stat_has_the_kernel_s_lines(phone: Phone) -> None:
    lines = (phone.tree.root / "proc/stat").read_text().splitlines()
    assert lines[0].startswith("cpu  ")
    assert [line.split()[0] for line in lines[1 : 1 + HOST_CORES]] == [f"cpu{core}" for core in range(HOST_CORES)]
    assert {"intr", "ctxt", "btime", "processes", "procs_running", "procs_blocked", "softirq"} <= {
        line.split()[0] for line in lines
    }


def test_a_lower_clock_keeps_the_cores_busy_and_draws_less(phone: Phone) -> None:
    phone.tick(1.0, busy(0.0))
    phone.tick(1.0, busy(HOST_CORES))
    full_w = phone.body.device_w
    phone.clocks.caps["clock_cap"] = 0.5
    phone.tick(1.0, busy(1.5 * HOST_CORES))  # half the time is all that the brake leaves
    power = phone.profile.power
    assert phone.body.load == pytest.approx(1.0, abs=1e-3)
    assert full_w == power.load_w
    assert phone.body.device_w == pytest.approx(power.idle_w + (power.load_w - power.idle_w) / 2, rel=1e-3)


def test_time_that_the_host_counts_late_is_not_lost(phone: Phone) -> None:
    phone.tick(1.0, busy(0.0))
    before = phone.body.consumed_j
    for _ in range(100):
        phone.tick(0.001, busy(0.01))  # a jiffy at once, after which nothing comes for a while
    after = phone.body.consumed_j
    span_w = phone.profile.power.load_w - phone.profile.power.idle_w
    assert after - before - 0.1 * phone.profile.power.idle_w == pytest.approx(span_w * 0.01 / HOST_CORES, rel=1e-3)


def test_rails_are_closed_on_a_phone_as_it_is_sold(tmp_path: Path) -> None:
    phone = Phone(load_profile("pixel_7"), 0, tmp_path, ProcessTable(), None)
    folder = "/sys/bus/iio/devices/iio:device0"
    assert phone.tree.read(f"{folder}/name") == b"s2mpg10-odpm\n"
    assert not (phone.tree.root / folder.lstrip("/") / "energy_value").exists()
    with pytest.raises(PermissionError):
        phone.tree.read(f"{folder}/energy_value")


def test_rails_count_their_share_of_the_truth(tmp_path: Path) -> None:
    phone = Phone(load_profile("pixel_7_rooted"), 0, tmp_path, ProcessTable(), None)

    def rails() -> dict[str, int]:
        found = {}
        for path in sorted(phone.tree.root.glob("sys/bus/iio/devices/*/energy_value")):
            head, *lines = path.read_text().splitlines()
            assert re.fullmatch(r"t=\d+", head)
            for number, line in enumerate(lines):
                match = RAIL.fullmatch(line)
                assert match
                assert int(match[1]) == number
                found[match[3]] = int(match[4])
        return found

    phone.tick(1.0, [])
    before, consumed_j = rails(), phone.body.consumed_j
    phone.tick(10.0, [])
    after, spent_uj = rails(), (phone.body.consumed_j - consumed_j) * 1e6
    shares = {rail: share for monitor in phone.profile.odpm for rail, share in monitor.rails.items()}
    assert set(after) == set(shares)
    for rail, share in shares.items():
        assert after[rail] - before[rail] == pytest.approx(share * spent_uj, abs=2)
    assert 0 < sum(shares.values()) < 1


def test_gpu_memory_is_that_of_the_processes_inside(sh: Sh, phone: Phone) -> None:
    assert "Can't find service: gpu" in sh("dumpsys gpu").err  # Android 8
    phone.profile = phone.profile.model_copy(update={"sdk": 33})
    assert "Global total: 0\n" in sh("dumpsys gpu").out
    code = "import sys; x = bytearray(b'x') * (40 << 20); print('up', flush=True); sys.stdin.read()"
    environment = {**os.environ, "POCKETFARM_SYSROOT": str(phone.tree.root)}
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", code], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with process:
        assert process.stdout and process.stdout.readline() == b"up\n"
        text = sh("dumpsys gpu").out
        process.kill()
    rows = dict(re.findall(r"^(Global|Proc \d+) total: (\d+)$", text, re.M))
    assert int(rows["Global"]) == int(rows[f"Proc {process.pid}"])
    assert 40 << 20 < int(rows["Global"]) < 80 << 20
