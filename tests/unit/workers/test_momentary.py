"""The readings of a phone's nodes at one moment, from what one `grep` prints."""

from __future__ import annotations

import random

import pytest

from orchestrator.energy import battery_draw_a
from orchestrator.model.device import Reading
from orchestrator.model.live.complaints import complaints
from orchestrator.model.power import GaugeCalibration
from tests.unit.orchestrator import make
from workers.devices.momentary import clock_off, parse_nodes

PIXEL = """\
/sys/class/power_supply/battery/current_now:-412000
/sys/class/power_supply/battery/voltage_now:4123000
/sys/class/power_supply/battery/status:Discharging
/sys/class/power_supply/battery/cycle_count:217
/sys/devices/system/cpu/cpufreq/policy0/scaling_cur_freq:738000
/sys/devices/system/cpu/cpufreq/policy4/scaling_cur_freq:2348000
/sys/devices/system/cpu/cpufreq/policy6/scaling_cur_freq:500000
/sys/class/misc/mali0/device/cur_freq:572000
"""


def test_nodes_of_a_phone() -> None:
    assert parse_nodes(PIXEL, at=7.0) == Reading(
        at=7.0, current_raw=-412000, voltage_v=4.123, status="Discharging", battery_cycles=217, cpu_hz=2_348_000_000,
        gpu_hz=572_000_000,
    )  # fmt: skip


def test_complaints_are_of_what_a_phone_tells(seed: int) -> None:
    """Drawn phones, by a plain reading of the table."""
    chance, now = random.Random(seed), 1.7e9
    for _ in range(200):
        health = chance.choice(["", "Good", "Cold", "Unknown", "Dead", "Over voltage", "Overheat"])
        clock_s, losses = chance.choice([-7200, -59, 0, 59, 61, 10**8]), chance.randrange(10)
        free = chance.choice([None, 0, 2**30 - 1, 2**30, 2**40])
        said = chance.choice([f"NOW:{now + clock_s:.0f}", "NOW:", "NOW:soon", ""])
        text = f"/sys/class/power_supply/battery/health:{health}\n{said}\n"
        off_s = clock_off(text, now)
        state = make.device(
            "A", reading=parse_nodes(text, now), clock_off_s=off_s, adb_losses=losses, free_storage_bytes=free
        ).state
        expected = {
            "battery": health in ("Dead", "Over voltage", "Overheat"),
            "storage": free is not None and free < 2**30,
            "clock": abs(clock_s) >= 60 and said[4:].isdecimal(),
            "adb": losses >= 5,
        }
        assert [each.check for each in complaints(state)] == [name for name, bad in expected.items() if bad], seed
        assert off_s is None or abs(off_s - clock_s) <= 5


def test_what_a_phone_does_not_tell_is_none() -> None:
    assert parse_nodes("", at=7.0) == Reading(at=7.0)
    odd = PIXEL.replace("-412000", "unknown").replace("2348000", "<unsupported>")
    assert parse_nodes(odd, at=7.0).current_raw is None
    assert parse_nodes(odd, at=7.0).cpu_hz == 738_000_000
    uncounted = parse_nodes(PIXEL.replace("cycle_count:217", "cycle_count:0"), at=7.0)
    assert uncounted.battery_cycles is None, "of batteries that do not count, kernels print 0"


@pytest.mark.parametrize(
    ("raw", "status", "gauge", "expected_a"),
    [
        (-412000, "Discharging", None, 0.412),
        (412000, "Discharging", None, 0.412),
        (900000, "Charging", None, -0.9),
        (412, "Discharging", GaugeCalibration(ampere_per_unit=1e-3, discharging_sign=1), 0.412),
        (-412, "Charging", GaugeCalibration(ampere_per_unit=1e-3, discharging_sign=1), -0.412),
        (None, "Discharging", None, None),
    ],
)
def test_the_draw_is_positive_while_the_battery_discharges(
    raw: int | None, status: str, gauge: GaugeCalibration | None, expected_a: float | None
) -> None:
    found = battery_draw_a(Reading(at=0.0, current_raw=raw, status=status), gauge)
    assert found == (None if expected_a is None else pytest.approx(expected_a))


def test_a_battery_of_another_name_is_found_as_the_agent_finds_it() -> None:
    """It is known by its type, and by telling a current: Huawei's `Battery` beside `MainBattery` and `bms`."""
    text = """\
/sys/class/power_supply/Battery/type:Battery
/sys/class/power_supply/Battery/status:Discharging
/sys/class/power_supply/bms/type:BMS
/sys/class/power_supply/bms/current_now:77
/sys/class/power_supply/MainBattery/type:Battery
/sys/class/power_supply/MainBattery/current_now:-431
/sys/class/power_supply/MainBattery/voltage_now:3994
/sys/class/power_supply/MainBattery/status:Discharging
"""
    found = parse_nodes(text, at=7.0)
    assert (found.current_raw, found.voltage_v, found.status) == (-431, pytest.approx(3.994), "Discharging")


@pytest.mark.parametrize("odd", ["-2147483648", "65535", "4294967295"])
def test_what_no_node_can_mean_is_not_told(odd: str) -> None:
    text = PIXEL.replace("-412000", odd).replace("4123000", odd).replace("217", odd)
    found = parse_nodes(text, at=7.0)
    assert (found.current_raw, found.voltage_v, found.battery_cycles) == (None, None, None)
