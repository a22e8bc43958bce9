"""The devices, their health, and current problems."""

from __future__ import annotations

from dataclasses import replace

from . import limits
from .board import Board
from .panel import Panel
from .panels import (
    ALERTS,
    DEVICES_NOT_USABLE,
    DEVICES_READY,
    HEALTH,
    IN_QUARANTINE,
    JOBS_WAITING,
    LEASED,
    OLDEST_JOB_WAITS_FOR,
    PARTS_THAT_ANSWER,
)

NUMBERS = DEVICES_READY, DEVICES_NOT_USABLE, IN_QUARANTINE, JOBS_WAITING, OLDEST_JOB_WAITS_FOR, PARTS_THAT_ANSWER
BOARD = Board(
    uid="pocketfarm-fleet",
    title="Fleet",
    description="The devices, their health, and current problems.",
    variables=("source", "host", "serial"),
    rows={
        "Now": (*(replace(each, width=4, height=4) for each in NUMBERS), replace(ALERTS, width=24, height=6)),
        "Devices": (
            Panel(
                "table", "Devices", "What each device is. VIRTUAL and REPLAY results are not a phone's.",
                {
                    'farm_device_info{host=~"$host", serial=~"$serial", source="$source"} * on (serial) '
                    "group_right (host, kind, source, model, soc, gpu) (farm_device_health == 1)": "",
                },
                width=24, height=10, hidden=("Time", "instance", "job", "__name__"),
                order=("serial", "host", "health", "source", "kind", "model", "soc", "gpu"),
            ),
            replace(HEALTH, width=12),
            replace(LEASED, width=12),
            Panel(
                "lines", "Charge of the fleet",
                "Median and 10th percentile of the charge. The dashboard Device has each battery.",
                {'source:farm_device_battery_ratio:quantile{source="$source"}': "quantile {{quantile}}"},
                unit="percentunit", least=0, most=1, limits=limits.below(limits.BATTERY_RATIO),
            ),
            Panel(
                "lines", "Heat of the fleet", "Median and 90th percentile of the battery temperature.",
                {'source:farm_device_battery_temperature_celsius:quantile{source="$source"}': "quantile {{quantile}}"},
                unit="celsius", limits=limits.above(limits.BATTERY_CELSIUS),
            ),
            Panel(
                "lines", "Ready and leased",
                "Shares of the devices that can get work, and of those that have work.",
                {
                    'source:farm_device_ready:ratio{source="$source"}': "ready",
                    'source:farm_device_leased:ratio{source="$source"}': "leased",
                },
                unit="percentunit", least=0, most=1,
            ),
        ),
    },
)  # fmt: skip
