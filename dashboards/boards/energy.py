"""Energy of inferences, and the heat that it makes."""

from __future__ import annotations

from .board import Board
from .panel import Panel
from .panels import BATTERY_TEMPERATURE, RESULT, TEMPERATURES, THERMAL_STATUS, of_results

METER = RESULT + " ({{power_source}}, {{scope}}, gain {{gain}})"


def _energy(stat: str) -> str:
    """Return a statistic as a column: rows are joined where all labels agree, so without `stat`."""
    return f"max without (stat) ({of_results('energy_per_inference_joules', stat=stat)})"


BOARD = Board(
    uid="pocketfarm-energy",
    title="Energy and thermal",
    description="Energy per inference with its interval, power, and the heat that it makes.",
    variables=("source", "host", "serial", "network", "experiment"),
    rows={
        "Energy: $network on $source devices": (
            Panel(
                "lines", "Energy per inference, net",
                "Net of the idle power before and after the load. Figures of different power sources "
                "and scopes do not compare; with a relative gain they compare on one device only.",
                {of_results("energy_per_inference_joules", basis="net", stat="median"): METER},
                unit="joule", width=12, least=0,
            ),
            Panel(
                "lines", "Energy per inference, gross",
                "Including the idle power. Do not compare it with net figures.",
                {of_results("energy_per_inference_joules", basis="gross", stat="median"): METER},
                unit="joule", width=12, least=0,
            ),
            Panel(
                "lines", "Power under load", "Mean power of the load, by source of power.",
                {of_results("power_watts", phase="load", stat="median"): METER}, unit="watt", least=0,
            ),
            Panel(
                "lines", "Idle power", "Mean power of the rests before and after the load.",
                {of_results("power_watts", phase="idle", stat="median"): METER}, unit="watt", least=0,
            ),
            Panel(
                "table", "Energy with its 95 % interval",
                "Median over blocks with its interval, the uncertainty of the gain included; `basis` "
                "says whether the idle power is in it.",
                {_energy("median"): "median", _energy("interval_low"): "low", _energy("interval_high"): "high"},
                hidden=("Time", "instance", "job", "__name__", "source"), unit="joule",
            ),
        ),
        "Heat": (BATTERY_TEMPERATURE, THERMAL_STATUS, TEMPERATURES),
    },
)  # fmt: skip
