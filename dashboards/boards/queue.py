"""The queue's dashboard: what waits and why, what runs, how it ends."""

from __future__ import annotations

from dataclasses import replace

from . import limits
from .board import Board
from .panel import Panel
from .panels import DEVICES_READY, JOBS_WAITING, OLDEST_JOB_WAITS_FOR


def _of_devices(states: str) -> str:
    chosen = 'on (serial) group_left (source) farm_device_info{source="$source"}'
    return f'sum by (serial) (farm_device_jobs{{state=~"{states}"}} * {chosen})'


BOARD = Board(
    uid="pocketfarm-queue",
    title="Queue",
    description="What waits and why, what runs, and how attempts end.",
    variables=("source",),
    rows={
        "Now": tuple(replace(each, height=4) for each in (JOBS_WAITING, OLDEST_JOB_WAITS_FOR, DEVICES_READY)),
        "Queue": (
            Panel(
                "stacked", "Jobs not done", "Jobs by state.",
                {'sum by (state) (farm_jobs{state=~"waiting|placed|running"})': "{{state}}"},
            ),
            Panel(
                "stacked", "Why jobs wait",
                "Waiting jobs by what they wait for: the same answer as that of `farm status`. "
                "docs/metrics.md has the kinds.",
                {"sum by (reason) (farm_jobs_waiting) > 0": "{{reason}}"}, unit="short",
            ),
            Panel(
                "stacked", "Jobs by experiment", "Jobs that wait or run, of each experiment by name.",
                {
                    'sum by (experiment, state) (farm_experiment_jobs{state=~"waiting|placed|running"}) > 0':
                        "{{experiment}} {{state}}",
                },
            ),
            Panel(
                "table", "Jobs by device",
                "A job that several devices may run waits at each of them: the column does not add up.",
                {_of_devices("waiting"): "waiting", _of_devices("placed|running"): "at work"},
                order=("serial", "waiting", "at work"),
            ),
            Panel("stacked", "Sessions", "What the workers do now.", {"farm_sessions": "{{phase}}"}),
        ),
        "Ends": (
            Panel(
                "bars", "Experiments under way", "Share of an experiment's jobs that are over.",
                {"experiment:farm_experiment_jobs:ratio_done": "{{experiment}}"},
                unit="percentunit", least=0, most=1,
            ),
            Panel(
                "stacked", "Attempts by cause",
                "Attempts that ended, per hour. Attempts without a cause ended well.",
                {"outcome_cause:farm_attempts:rate5m * 3600": "{{outcome}} {{cause}}"},
            ),
            Panel(
                "stacked", "Records an hour", "Records in the ledger, of devices of the chosen source.",
                {'outcome_source:farm_records:rate5m{source="$source"} * 3600': "{{outcome}}"},
            ),
            Panel(
                "lines", "Attempts lost",
                "Share of the last hour's attempts. The line is that of the alert AttemptsLost.",
                {"farm:attempts_lost:ratio1h": "lost"},
                unit="percentunit", least=0, limits=limits.above(limits.LOST_RATIO),
            ),
        ),
    },
)  # fmt: skip
