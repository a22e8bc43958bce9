"""Queueing experiments: what the newest run of each found."""

from __future__ import annotations

from .board import Board
from .panel import Panel
from .panels import one_stat

OF_SOURCE = '{source="$source"}'
NAME = "{{experiment}} {{policy}}"


def _of_source(family: str) -> str:
    return f"farm_queueing_{family}{OF_SOURCE}"


BOARD = Board(
    uid="pocketfarm-queueing",
    title="Queueing",
    description="Load, sojourn, drops, utilisation and energy of the newest run of each queueing experiment.",
    variables=("source",),
    rows={
        "Newest runs on $source devices": (
            Panel(
                "table", "Newest runs",
                "`farm queue show RUN` has all figures with their intervals, `farm queue list` the older runs.",
                {
                    _of_source("offered_per_second"): "offered /s",
                    _of_source("throughput_per_second"): "served /s",
                    one_stat("farm_queueing_sojourn_seconds", "p50"): "sojourn p50, s",
                    one_stat("farm_queueing_sojourn_seconds", "p99"): "sojourn p99, s",
                    _of_source("utilisation_ratio"): "utilisation",
                    _of_source("dropped_ratio"): "dropped",
                    _of_source("energy_per_request_joules"): "J a request",
                    _of_source("doubts"): "warnings",
                    f"(time() - {_of_source('timestamp_seconds')}) / 3600": "age, h",
                },
                width=24, nothing="none", order=("experiment", "policy", "source"),
            ),
        ),
        "From run to run": (
            Panel(
                "steps", "Load", "Requests per second: offered and served.",
                {
                    _of_source("offered_per_second"): f"{NAME} offered",
                    _of_source("throughput_per_second"): f"{NAME} served",
                },
                unit="reqps", least=0,
            ),
            Panel(
                "steps", "Sojourn", "Time from the intended arrival to the end: median and 99th percentile.",
                {'farm_queueing_sojourn_seconds{source="$source", stat=~"p50|p99"}': NAME + " {{stat}}"},
                unit="s", least=0,
            ),
            Panel(
                "steps", "Utilisation", "Share of the servers' time.", {_of_source("utilisation_ratio"): NAME},
                unit="percentunit", least=0, most=1,
            ),
            Panel(
                "steps", "Drops and losses",
                "Shares of the requests: the queue was full or the deadline over; or the server went away.",
                {_of_source("dropped_ratio"): f"{NAME} dropped", _of_source("lost_ratio"): f"{NAME} lost"},
                unit="percentunit", least=0,
            ),
            Panel(
                "steps", "Energy of a request",
                "While it was served; runs without a meter have none. Of a run with warnings: `farm queue show`.",
                {_of_source("energy_per_request_joules"): NAME}, unit="joule", least=0,
            ),
        ),
    },
)  # fmt: skip
