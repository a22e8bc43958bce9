"""What waits and why, what runs, how it ends."""

from __future__ import annotations

from dataclasses import replace

from .board import Board, Row
from .panel import Panel
from .panels import DEVICES_READY, JOBS_WAITING, OLDEST_JOB_WAITS_FOR

BOARD = Board(
    uid="pocketfarm-queue",
    title="Queue",
    description="What waits and why, what runs, and how attempts end.",
    variables=("source",),
    rows=(
        Row(
            "Now",
            (
                replace(JOBS_WAITING, height=4),
                replace(OLDEST_JOB_WAITS_FOR, height=4),
                replace(DEVICES_READY, height=4),
            ),
        ),
        Row(
            "Queue",
            (
                Panel(
                    "stacked",
                    "Jobs not done",
                    "Jobs by state.",
                    (('sum by (state) (farm_jobs{state=~"waiting|placed|running"})', "{{state}}"),),
                ),
                Panel(
                    "stacked",
                    "Why jobs wait",
                    (
                        "Waiting jobs by what they wait for: the same answer as that of `farm status`. "
                        "docs/metrics.md has the kinds."
                    ),
                    (("sum by (reason) (farm_jobs_waiting) > 0", "{{reason}}"),),
                    unit="short",
                ),
                Panel("stacked", "Sessions", "What the workers do now.", (("farm_sessions", "{{phase}}"),)),
            ),
        ),
        Row(
            "Ends",
            (
                Panel(
                    "bars",
                    "Experiments under way",
                    "Share of an experiment's jobs that are over.",
                    (
                        (
                            (
                                'sum by (experiment) (farm_experiment_jobs{state=~"done|cancelled"} or '
                                "farm_experiment_jobs * 0) / sum by (experiment) (farm_experiment_jobs)"
                            ),
                            "{{experiment}}",
                        ),
                    ),
                    unit="percentunit",
                    least=0,
                    most=1,
                ),
                Panel(
                    "stacked",
                    "Attempts by cause",
                    "Attempts that ended, an hour. An empty cause is a good end.",
                    (
                        (
                            "sum by (outcome, cause) (rate(farm_attempts_total[$__rate_interval])) * 3600",
                            "{{outcome}} {{cause}}",
                        ),
                    ),
                ),
                Panel(
                    "stacked",
                    "Records an hour",
                    "Records in the ledger, of devices of the chosen source.",
                    (
                        (
                            ('sum by (outcome) (rate(farm_records_total{source="$source"}[$__rate_interval])) * 3600'),
                            "{{outcome}}",
                        ),
                    ),
                ),
            ),
        ),
    ),
)
