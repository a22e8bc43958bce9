"""The farm itself: parts, hosts, records on their way, the exporter."""

from __future__ import annotations

from dataclasses import replace

from . import limits
from .board import Board
from .panel import Panel
from .panels import ALERTS, DEVICES_NOT_USABLE, IN_QUARANTINE, PARTS_THAT_ANSWER

BOARD = Board(
    uid="pocketfarm-health",
    title="Farm health",
    description="Parts, hosts, records on their way, and the exporter itself.",
    variables=("source", "host"),
    rows={
        "Now": (
            replace(PARTS_THAT_ANSWER, height=4),
            replace(DEVICES_NOT_USABLE, height=4),
            replace(IN_QUARANTINE, height=4),
            replace(ALERTS, width=24, height=6),
        ),
        "Plumbing": (
            Panel(
                "lines", "Hosts", "Jobs that each host's worker runs.",
                {'farm_host_running_jobs{host=~"$host"}': "{{host}}"}, width=6,
            ),
            Panel(
                "lines", "Records on their way",
                "In spools on the hosts' disks and in Redis. A dead letter could not be read. "
                "The lines are those of the alert RecordsPileUp: of a spool, and of Redis.",
                {
                    'farm_host_spool_records{host=~"$host"}': "spool {{host}}",
                    "farm_stream_records": "stream",
                    "farm_dead_letters": "dead letters",
                },
                width=6, limits=limits.above(limits.SPOOL_RECORDS, limits.STREAM_RECORDS),
            ),
            Panel(
                "lines", "Reading the parts", "Time that the exporter takes to read each part.",
                {"farm_scrape_duration_seconds": "{{part}}"}, unit="s", width=6,
            ),
            Panel(
                "lines", "Scrape errors", "Of the last ten minutes. The line is that of the alert ScrapeErrors.",
                {"increase(farm_scrape_errors_total[10m])": "{{part}}"},
                width=6, limits=limits.above(limits.SCRAPE_ERRORS),
            ),
        ),
    },
)  # fmt: skip
