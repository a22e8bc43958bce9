"""Parsers on what Android prints, verbatim."""

from __future__ import annotations

import random

import pytest

from workers.devices import dumpsys

BATTERY = """Current Battery Service state:
  AC powered: false
  USB powered: true
  Wireless powered: false
  Max charging current: 500000
  Max charging voltage: 5000000
  Charge counter: 3270000
  status: 5
  health: 2
  present: true
  level: 87
  scale: 100
  voltage: 4352
  temperature: 274
  technology: Li-ion
"""
SAMSUNG = """Current Battery Service state:
  AC powered: false
  USB powered: false
  Wireless powered: false
  Dock powered: false
  level: 61
  scale: 100
  temperature: 312
  Charging state: 0
[EventLogBuffer]
  level:12
  temperature:455
  USB powered: true
"""
THERMAL = """IsStatusOverride: false
Thermal Status: 2
Cached temperatures:
\tTemperature{mValue=84.208, mType=1, mName=GPU, mStatus=0}
HAL Ready: true
Current temperatures from HAL:
\tTemperature{mValue=57.9, mType=0, mName=CPU, mStatus=0}
\tTemperature{mValue=-4.5, mType=3, mName=SKIN, mStatus=1}
Current cooling devices from HAL:
\tCoolingDevice{mValue=0, mType=2, mName=cpu}
\tTemperature{mValue=99.0, mType=0, mName=LATER, mStatus=0}
"""


def test_battery_on_usb() -> None:
    assert dumpsys.parse_battery(BATTERY) == dumpsys.Battery(87.0, 27.4, charging=True)


def test_samsungs_event_log_is_not_the_present() -> None:
    assert dumpsys.parse_battery(SAMSUNG) == dumpsys.Battery(61.0, 31.2, charging=False)


def test_frozen_figures_are_noticed() -> None:
    frozen = BATTERY.replace("state:", "state:\n  (UPDATES STOPPED -- use 'reset' to restart)", 1)
    assert dumpsys.parse_battery(frozen).updates_stopped


def test_scale_other_than_100() -> None:
    assert dumpsys.parse_battery("  level: 100\n  scale: 200\n").percent == 50.0


@pytest.mark.parametrize(
    "text", ["", "Can't find service: battery\n", "  level: full\n  temperature: warm\n", "\x00\xff: 3"]
)
def test_nothing_readable_is_unknown(text: str) -> None:
    assert dumpsys.parse_battery(text) == dumpsys.Battery()


def test_thermal_reads_the_hal_block_alone() -> None:
    thermal = dumpsys.parse_thermal(THERMAL)
    assert thermal.status == 2
    assert thermal.temperatures == (
        dumpsys.Temperature("CPU", 0, 57.9, 0),
        dumpsys.Temperature("SKIN", 3, -4.5, 1),
    )


ODD_ROWS = (
    "\tTemperature{mValue=NaN, mType=1, mName=GPU0, mStatus=0}",
    "\tTemperature{mValue=Infinity, mType=3, mName=skin-a, mStatus=0}",
    "\tTemperature{mValue=0.0, mType=3, mName=parked, mStatus=0}",
    "\tTemperature{mValue=-40.0, mType=3, mName=parked, mStatus=0}",
    "\tTemperature{mValue=125.0, mType=3, mName=parked, mStatus=0}",
    "\tTemperature{mValue=2800.0, mType=0, mName=parked, mStatus=0}",
    "\tTemperature{mValue=, mType=3, mName=, mStatus=}",
    "\tTemperature{mValue=44.0, mType=skin, mName=x, mStatus=0}",
    "\tTemperature{mVal",
    "\t<no sensor>",
    "",
    "logd: something else",
)


def test_an_odd_row_costs_itself_alone(seed: int) -> None:
    """Wherever it stands, and of whatever form it is."""
    draw = random.Random(seed)
    for _ in range(200):
        wanted = [
            dumpsys.Temperature(f"s {i}" if i % 2 else f"s{i}", i % 5, round(draw.uniform(20, 90), 2), i % 3)
            for i in range(draw.randint(1, 8))
        ]
        rows = [f"\tTemperature{{mValue={t}, mType={k}, mName={n}, mStatus={s}}}" for n, k, t, s in wanted]
        for _ in range(draw.randint(1, 5)):
            rows.insert(draw.randint(0, len(rows)), draw.choice(ODD_ROWS))
        end = draw.choice(["\n", "\r\n"])
        head, _, tail = THERMAL.partition("Current temperatures from HAL:\n")
        tail = tail[tail.index("Current cooling") :]
        text = end.join([*head.splitlines(), "Current temperatures from HAL:", *rows, *tail.splitlines()])
        assert dumpsys.parse_thermal(text).temperatures == tuple(wanted), text


@pytest.mark.parametrize("odd", ["-1", "255", "2147483647", "-2147483648"])
def test_what_no_battery_has_is_unknown(odd: str) -> None:
    found = dumpsys.parse_battery(BATTERY.replace("level: 87", f"level: {odd}").replace("274", f"{odd}0"))
    assert found.percent is None
    assert found.temp_c is None or odd == "-1"


def test_thermal_hal_not_ready() -> None:
    text = THERMAL.replace("HAL Ready: true", "HAL Ready: false")
    assert dumpsys.parse_thermal(text) == dumpsys.Thermal(2, ())


def test_thermal_service_missing() -> None:
    assert dumpsys.parse_thermal("Can't find service: thermalservice\n") == dumpsys.Thermal()


TOYBOX_DF = """Filesystem 1K-blocks Used Available Use% Mounted on
/dev/block/dm-5 111846396 13283808 98562588 12% /data
"""
WRAPPED_DF = """Filesystem           1K-blocks    Used Available Use% Mounted on
/dev/block/a/very/long/name/indeed
  100 40 60 40% /data
"""


@pytest.mark.parametrize(("text", "expected"), [(TOYBOX_DF, 98562588), (WRAPPED_DF, 60)])
def test_free_storage(text: str, expected: int) -> None:
    assert dumpsys.parse_free_bytes(text) == expected * 1024


@pytest.mark.parametrize("text", ["", "df: /data: Permission denied\n", "a b c\n"])
def test_free_storage_unknown(text: str) -> None:
    assert dumpsys.parse_free_bytes(text) is None


def test_properties() -> None:
    text = "[ro.product.model]: [SM-G930V]\n[ro.x]: [a]: [b]\n[empty]: []\nnoise\n"
    assert dumpsys.parse_properties(text) == {"ro.product.model": "SM-G930V", "ro.x": "a]: [b", "empty": ""}


def test_memory() -> None:
    assert dumpsys.parse_memory_bytes("MemTotal:        3915580 kB\nMemFree: 1 kB\n") == 3915580 * 1024
    assert dumpsys.parse_memory_bytes("") == 0
