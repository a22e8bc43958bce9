"""One device or a few: queue, battery, heat, clocks."""

from __future__ import annotations

from dataclasses import replace

from .board import Board
from .panel import Panel
from .panels import BATTERY, BATTERY_TEMPERATURE, DEVICE, HEALTH, LEASED, TEMPERATURES, THERMAL_STATUS, of_devices

BOARD = Board(
    uid="pocketfarm-device",
    title="Device",
    description="Queue, battery, heat and clocks of the chosen devices, beside what they did.",
    variables=("source", "host", "serial"),
    rows={
        "State": (
            replace(HEALTH, height=6),
            replace(LEASED, height=6),
            Panel(
                "steps", "Jobs",
                "Jobs that the device may be given, is given and runs; others may run some of those that wait.",
                {of_devices("farm_device_jobs"): DEVICE + " {{state}}"}, height=6, least=0,
            ),
        ),
        "Heat": (BATTERY_TEMPERATURE, THERMAL_STATUS, TEMPERATURES),
        "Clocks and power": (
            Panel(
                "lines", "Clocks",
                "Of the fastest core, and of the GPU where the shell may read it: of an idle phone, "
                "and in a session that measures power.",
                {
                    of_devices("farm_device_cpu_frequency_hertz"): f"CPU {DEVICE}",
                    of_devices("farm_device_gpu_frequency_hertz"): f"GPU {DEVICE}",
                },
                unit="hertz", least=0,
            ),
            Panel(
                "lines", "Battery current",
                "Out of the battery, negative while it is charged: of an idle phone, and in a session"
                " that measures power.",
                {of_devices("farm_device_battery_current_amperes"): DEVICE}, unit="amp",
            ),
            Panel(
                "lines", "Battery voltage", "Of an idle phone, and in a session that measures power.",
                {of_devices("farm_device_battery_voltage_volts"): DEVICE}, unit="volt",
            ),
            replace(BATTERY, width=24),
        ),
    },
)  # fmt: skip
