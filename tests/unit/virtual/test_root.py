"""Root, on phones that have it: what is closed opens, and writing to nodes changes the phone."""

from __future__ import annotations

from pathlib import Path

import pytest

from virtual_phones.phone import Phone
from virtual_phones.profile import load_profile
from virtual_phones.system.processes import ProcessTable

from .conftest import Sh

POLICY = "/sys/devices/system/cpu/cpufreq/policy4"
MALI = "/sys/class/misc/mali0/device"
SUSPEND = "/sys/class/power_supply/battery/input_suspend"


@pytest.fixture
def phone(tmp_path: Path) -> Phone:
    return Phone(load_profile("pixel_7_rooted"), 0, tmp_path / "phone", ProcessTable(), None)


def test_there_is_no_su_on_a_phone_as_it_is_sold(tmp_path: Path, sh: Sh, phone: Phone) -> None:
    phone.profile = load_profile("pixel_7")
    done = sh("su -c id")
    assert (done.code, done.err) == (127, "/system/bin/sh: su: inaccessible or not found\n")
    assert sh("which su").code == 1


@pytest.mark.parametrize(
    "script", ["su -c 'id -u'", "su 0 id -u", "su root -c 'id -u'", "echo id -u | su", "su -c 'sh -c \"id -u\"'"]
)
def test_ways_to_become_root(sh: Sh, script: str) -> None:
    assert sh(script).out == "0\n"
    assert sh("id -u").out == "2000\n"


def test_the_shell_user_may_not_lock_clocks_and_root_may(sh: Sh, phone: Phone) -> None:
    assert sh(f"echo 1000000 > {POLICY}/scaling_max_freq").code == 1
    assert phone.clocks.share() == 1.0
    script = f"for_max=1000000; echo $for_max > {POLICY}/scaling_max_freq; cat {POLICY}/scaling_max_freq"
    assert sh(f"su -c '{script}'").out == "1000000\n"
    assert sh("cat /sys/devices/system/cpu/cpu5/cpufreq/scaling_max_freq").out == "1000000\n"
    assert phone.clock == pytest.approx(1_000_000 / 2_348_000)
    assert phone.running_share == phone.clock


def test_clocks_are_locked_through_a_core_s_link_and_the_gpu_s_too(sh: Sh, phone: Phone) -> None:
    core = "/sys/devices/system/cpu/cpu0/cpufreq"
    assert sh(f"su -c 'echo 1803000 > {core}/scaling_min_freq && echo performance > {core}/scaling_governor'").code == 0
    assert sh(f"cat {core}/scaling_min_freq {core}/scaling_governor").out == "1803000\nperformance\n"
    assert sh(f"su -c 'echo 572000000 > {MALI}/scaling_max_freq; echo 572000000 > {MALI}/scaling_min_freq'").code == 0
    assert sh(f"cat {MALI}/scaling_min_freq {MALI}/scaling_max_freq {MALI}/cur_freq").out == "572000000\n" * 3
    phone.boot()
    assert phone.clocks.share() == 1.0, "nothing of it survives a reboot"


@pytest.mark.parametrize(
    ("node", "text", "error"),
    [
        (f"{POLICY}/scaling_max_freq", "fast", "Invalid argument"),
        (f"{POLICY}/scaling_governor", "fast", "Invalid argument"),
        ("/sys/class/power_supply/battery/temp", "1", "Permission denied"),
        ("/proc/stat", "1", "Permission denied"),
        ("/system/build.prop", "1", "Read-only"),
    ],
)
def test_nodes_refuse_what_they_do_not_take(sh: Sh, phone: Phone, node: str, text: str, error: str) -> None:
    before = sh(f"cat {node}").out
    done = sh(f"su -c 'echo {text} > {node}'")
    assert done.code == 1
    assert error in done.err
    assert sh(f"cat {node}").out == before


def test_root_can_refuse_the_supply(sh: Sh, phone: Phone) -> None:
    phone.set_supply(plugged=True)
    assert "Permission denied" in sh(f"cat {SUSPEND}").err
    assert sh(f"[ -e {SUSPEND} ] && ! [ -r {SUSPEND} ] && su -c '[ -w {SUSPEND} ] && cat {SUSPEND}'").out == "0\n"
    sh(f"su -c 'echo 1 > {SUSPEND}'")
    assert not phone.body.charging
    assert sh("su -c 'cat /sys/class/power_supply/battery/charging_enabled'").out == "0\n"
    assert not (phone.tree.root / SUSPEND.lstrip("/")).exists()
    sh("su -c 'echo 1 > /sys/class/power_supply/battery/charging_enabled'")
    assert phone.body.charging


def test_root_writes_ordinary_files_but_does_not_leave_the_phone(sh: Sh, tmp_path: Path) -> None:
    assert sh("su -c 'mkdir -p /data/misc && echo a > /data/misc/x && cat /data/misc/x'").out == "a\n"
    assert sh("mkdir /data/other").code == 1
    (tmp_path / "secret").write_text("secret")
    assert sh("su -c 'cat /../../secret'").code == 1
