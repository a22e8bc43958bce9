"""What a phone's nodes say at one moment, from what one `grep` prints."""

from __future__ import annotations

import pytest

from orchestrator.energy import battery_draw_a
from orchestrator.model.device import Reading
from orchestrator.model.power import GaugeCalibration
from workers.devices.momentary import parse_nodes

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
    """By its type, and that it tells a current: Huawei's `Battery` beside `MainBattery` and `bms`."""
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
