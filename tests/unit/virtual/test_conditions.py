"""Commands by which the conditions of a measurement are set and read back, in the words of a real phone."""

from __future__ import annotations

import pytest

from virtual_phones.phone import Phone

from .conftest import Sh

FIXED = "cmd power set-fixed-performance-mode-enabled"


def newer(phone: Phone, **changes: object) -> None:
    phone.profile = phone.profile.model_copy(update={"sdk": 33, **changes})


def test_fixed_performance_mode_holds_the_clocks(sh: Sh, phone: Phone) -> None:
    newer(phone, fixed_performance=0.7)
    policy = "/sys/devices/system/cpu/cpufreq/policy0"
    assert (sh(f"{FIXED} true").code, sh(f"{FIXED} true").out) == (0, "")
    low, high, top = sh(
        f"cat {policy}/scaling_min_freq {policy}/scaling_max_freq {policy}/cpuinfo_max_freq"
    ).out.split()
    assert low == high == str(round(0.7 * int(top)))
    assert phone.running_share == pytest.approx(0.7, abs=0.01)
    sh(f"{FIXED} false")
    assert sh(f"cat {policy}/scaling_max_freq").out.strip() == top
    assert phone.running_share == 1.0


def test_a_phone_without_that_mode_says_so(sh: Sh, phone: Phone) -> None:
    old = sh(f"{FIXED} true")
    assert (old.code, old.err) == (255, "Unknown command: set-fixed-performance-mode-enabled\n")
    newer(phone)
    lacking = sh(f"{FIXED} true")
    assert lacking.code == 255
    assert lacking.err.startswith("Failed to set FIXED_PERFORMANCE mode\nThis is likely because Power HAL AIDL is not")
    assert phone.clocks.fixed is None


def test_battery_saver_is_a_setting_too(sh: Sh, phone: Phone) -> None:
    assert sh("cmd power set-mode 1").err == "Unknown command: set-mode\n"
    newer(phone)
    assert sh("cmd power set-mode 1; settings get global low_power").out == "1\n"


def test_sync_and_brightness_are_settings(sh: Sh) -> None:
    assert sh("settings get global auto_sync").out == "1\n"
    assert sh("settings put global auto_sync 0; settings get global auto_sync").out == "0\n"
    script = "settings put system screen_brightness_mode 0; settings put system screen_brightness 1"
    assert sh(f"{script}; settings get system screen_brightness").out == "1\n"


def test_bluetooth_is_a_service_and_a_setting(sh: Sh) -> None:
    assert sh("settings get global bluetooth_on").out == "1\n"
    assert sh("svc bluetooth disable; settings get global bluetooth_on").out == "0\n"
    assert sh("svc bluetooth enable; settings get global bluetooth_on").out == "1\n"
    assert "usage: svc bluetooth" in sh("svc bluetooth toggle").err
    assert sh("svc wifi disable").code == 0


def test_packages(sh: Sh) -> None:
    everything = sh("pm list packages").out.split()
    assert "package:android" in everything
    assert sh("cmd package list packages").out.split() == everything
    system, others = sh("pm list packages -s").out.split(), sh("pm list packages -3").out.split()
    assert sorted(system + others) == everything
    assert others
    assert sh("pm list packages systemui").out == "package:com.android.systemui\n"
    assert (sh("pm path com.android.shell").code, sh("pm path com.nobody").code) == (0, 1)


def test_apps_in_the_background_are_ended_silently_and_back_after_booting(sh: Sh, phone: Phone) -> None:
    def users() -> list[str]:
        return [user for user in sh("ps -A -o USER").out.split() if user.startswith("u0_a")]

    assert len(users()) == 2
    assert "org.example.messenger" in sh("ps -A").out
    assert sh("am force-stop org.example.messenger") == (0, "", "")
    assert len(users()) == 1
    assert sh("am kill-all; cmd activity kill-all") == (0, "", "")
    assert users() == []
    assert sh("am force-stop").code == 255
    phone.boot()
    assert len(users()) == 2


def test_the_idle_controller(sh: Sh, phone: Phone) -> None:
    assert sh("dumpsys deviceidle enabled").out == "1\n"
    assert sh("dumpsys deviceidle disable").out == "Deep idle mode disabled\nLight idle mode disabled\n"
    assert sh("cmd deviceidle enabled; dumpsys deviceidle force-idle").out == "0\nUnable to go deep idle; not enabled\n"
    assert sh("dumpsys deviceidle enable deep").out == "Deep idle mode enabled\n"
    assert "mLightEnabled=false  mDeepEnabled=true" in sh("dumpsys deviceidle").out
    assert sh("dumpsys deviceidle force-idle; dumpsys deviceidle get deep").out.splitlines()[1] == "IDLE"
    assert sh("dumpsys deviceidle unforce").out == "Light state: ACTIVE, deep state: ACTIVE\n"
    phone.boot()
    assert sh("dumpsys deviceidle enabled").out == "1\n"


def test_unplugging_in_words_alone_does_not_stop_charging(sh: Sh, phone: Phone) -> None:
    phone.set_supply(plugged=True)
    assert "USB powered: true" in sh("dumpsys battery").out
    assert "USB powered: false" in sh("dumpsys battery unplug; dumpsys battery").out
    phone.tick(1.0, [])
    assert phone.body.current_a < 0
    assert "USB powered: true" in sh("dumpsys battery reset; dumpsys battery").out
