"""Queueing experiments: what the newest run of each found."""

from __future__ import annotations

from .board import Board, Row
from .panel import Panel
from .panels import one_stat

OF_SOURCE = '{source="$source"}'
NAME = "{{experiment}} {{policy}}"


def _steps(title: str, description: str, family: str, unit: str, most: float | None = None) -> Panel:
    return Panel("steps", title, description, ((family + OF_SOURCE, NAME),), unit=unit, least=0, most=most)


BOARD = Board(
    uid="pocketfarm-queueing",
    title="Queueing",
    description="Load, sojourn, drops, utilisation and energy of the newest run of each queueing experiment.",
    variables=("source",),
    rows=(
        Row(
            "Newest runs on $source devices",
            (
                Panel(
                    "table",
                    "Newest runs",
                    "`farm queue show RUN` has all figures with their intervals, `farm queue list` the older runs.",
                    (
                        ("farm_queueing_offered_per_second" + OF_SOURCE, "offered /s"),
                        ("farm_queueing_throughput_per_second" + OF_SOURCE, "served /s"),
                        (one_stat("farm_queueing_sojourn_seconds", "p50"), "sojourn p50, s"),
                        (one_stat("farm_queueing_sojourn_seconds", "p99"), "sojourn p99, s"),
                        ("farm_queueing_utilisation_ratio" + OF_SOURCE, "utilisation"),
                        ("farm_queueing_dropped_ratio" + OF_SOURCE, "dropped"),
                        ("farm_queueing_energy_per_request_joules" + OF_SOURCE, "J a request"),
                        ("farm_queueing_doubts" + OF_SOURCE, "warnings"),
                        ("(time() - farm_queueing_timestamp_seconds" + OF_SOURCE + ") / 3600", "age, h"),
                    ),
                    width=24,
                    nothing="none",
                    order=("experiment", "policy", "source"),
                ),
            ),
        ),
        Row(
            "From run to run",
            (
                Panel(
                    "steps",
                    "Load",
                    "Requests per second: offered and served.",
                    (
                        ("farm_queueing_offered_per_second" + OF_SOURCE, f"{NAME} offered"),
                        ("farm_queueing_throughput_per_second" + OF_SOURCE, f"{NAME} served"),
                    ),
                    unit="reqps",
                    least=0,
                ),
                Panel(
                    "steps",
                    "Sojourn",
                    "Time from the intended arrival to the end: median and 99th percentile.",
                    (('farm_queueing_sojourn_seconds{source="$source", stat=~"p50|p99"}', NAME + " {{stat}}"),),
                    unit="s",
                    least=0,
                ),
                _steps(
                    "Utilisation", "Share of the servers' time.", "farm_queueing_utilisation_ratio", "percentunit", 1
                ),
                Panel(
                    "steps",
                    "Drops and losses",
                    "Shares of the requests: the queue was full or the deadline over; or the server went away.",
                    (
                        ("farm_queueing_dropped_ratio" + OF_SOURCE, f"{NAME} dropped"),
                        ("farm_queueing_lost_ratio" + OF_SOURCE, f"{NAME} lost"),
                    ),
                    unit="percentunit",
                    least=0,
                ),
                _steps(
                    "Energy of a request",
                    "While it was served; runs without a meter have none. Of a run with warnings: `farm queue show`.",
                    "farm_queueing_energy_per_request_joules",
                    "joule",
                ),
            ),
        ),
    ),
)
