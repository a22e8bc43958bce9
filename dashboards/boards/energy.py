"""Energy of inferences, and the heat that it makes."""

from __future__ import annotations

from .board import Board, Row
from .panel import Panel
from .panels import BATTERY_TEMPERATURE, TEMPERATURES, THERMAL_STATUS, one_stat

ENERGY = "farm_results_energy_per_inference_joules"
CHOSEN = ', serial=~"$serial", network=~"$network"'

BOARD = Board(
    uid="pocketfarm-energy",
    title="Energy and thermal",
    description="Energy per inference with its interval, power, and the heat that it makes.",
    variables=("source", "host", "serial", "network"),
    rows=(
        Row(
            "Energy: $network on $source devices",
            (
                Panel(
                    "lines",
                    "Energy per inference, net",
                    (
                        "Net of the idle power before and after the load. Figures of different power sources "
                        "and scopes do not compare; with a relative gain they compare on one device only."
                    ),
                    (
                        (
                            (
                                'farm_results_energy_per_inference_joules{source="$source", serial=~"$serial", '
                                'network=~"$network", basis="net", stat="median"}'
                            ),
                            (
                                "{{serial}} {{network}} {{backend}} {{precision}} {{options}} ({{power_source}}, "
                                "{{scope}}, gain {{gain}})"
                            ),
                        ),
                    ),
                    unit="joule",
                    width=12,
                    least=0,
                ),
                Panel(
                    "lines",
                    "Energy per inference, gross",
                    "Including the idle power. Do not compare it with net figures.",
                    (
                        (
                            (
                                'farm_results_energy_per_inference_joules{source="$source", serial=~"$serial", '
                                'network=~"$network", basis="gross", stat="median"}'
                            ),
                            (
                                "{{serial}} {{network}} {{backend}} {{precision}} {{options}} ({{power_source}}, "
                                "{{scope}}, gain {{gain}})"
                            ),
                        ),
                    ),
                    unit="joule",
                    width=12,
                    least=0,
                ),
                Panel(
                    "lines",
                    "Power under load",
                    "Mean power of the load, by source of power.",
                    (
                        (
                            (
                                'farm_results_power_watts{source="$source", serial=~"$serial", network=~"$network", '
                                'phase="load", stat="median"}'
                            ),
                            (
                                "{{serial}} {{network}} {{backend}} {{precision}} {{options}} ({{power_source}}, "
                                "{{scope}}, gain {{gain}})"
                            ),
                        ),
                    ),
                    unit="watt",
                    least=0,
                ),
                Panel(
                    "lines",
                    "Idle power",
                    "Mean power of the rests before and after the load.",
                    (
                        (
                            (
                                'farm_results_power_watts{source="$source", serial=~"$serial", network=~"$network", '
                                'phase="idle", stat="median"}'
                            ),
                            (
                                "{{serial}} {{network}} {{backend}} {{precision}} {{options}} ({{power_source}}, "
                                "{{scope}}, gain {{gain}})"
                            ),
                        ),
                    ),
                    unit="watt",
                    least=0,
                ),
                Panel(
                    "table",
                    "Energy with its 95 % interval",
                    (
                        "Median over blocks with its interval, the uncertainty of the gain included; `basis` "
                        "says whether the idle power is in it."
                    ),
                    (
                        (one_stat(ENERGY, "median", CHOSEN), "median"),
                        (one_stat(ENERGY, "interval_low", CHOSEN), "low"),
                        (one_stat(ENERGY, "interval_high", CHOSEN), "high"),
                    ),
                    hidden=("Time", "instance", "job", "__name__", "source"),
                    unit="joule",
                ),
            ),
        ),
        Row(
            "Heat",
            (
                BATTERY_TEMPERATURE,
                THERMAL_STATUS,
                TEMPERATURES,
            ),
        ),
    ),
)
