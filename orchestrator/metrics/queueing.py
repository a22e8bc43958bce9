"""Queueing experiments as metrics: what the newest run of each found on its devices."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

from prometheus_client.core import Metric

from orchestrator.ledger.aggregates import queue_runs
from orchestrator.ledger.database import Transaction
from orchestrator.ledger.packed import readable, unpack

from .family import gauge

LABELS = ("experiment", "policy", "source")
MOST_EXPERIMENTS = 50
"""Names that get series of their own: those that ran last."""
SOJOURN = ("mean", "p50", "p99")
FIGURES = {
    "farm_queueing_timestamp_seconds": ("When the newest run began.", "began_at"),
    "farm_queueing_requests": ("Requests of the newest run.", "requests"),
    "farm_queueing_doubts": ("Warnings about the figures of the newest run.", "warnings"),
    "farm_queueing_offered_per_second": ("Requests that were meant to arrive, a second.", "offered_per_s"),
    "farm_queueing_throughput_per_second": ("Requests that were served to the end, a second.", "throughput_per_s"),
    "farm_queueing_utilisation_ratio": ("Share of the servers' time.", "utilisation"),
    "farm_queueing_dropped_ratio": ("Share of the requests that were dropped.", "drop_share"),
    "farm_queueing_lost_ratio": ("Share of the requests whose server went away.", "lost_share"),
    "farm_queueing_energy_per_request_joules": ("Energy while a request was served.", "energy_j_per_request"),
}
"""Family -> what it is, and its key in a run's summary."""

Runs = dict[tuple[str, str, str], dict[str, Any]]


def queueing_families(connection: Transaction) -> Iterator[Metric]:
    """Yield the figures of each experiment's newest run; a figure that a run does not have has no sample."""
    runs = _newest(connection)
    for name, (text, figure) in FIGURES.items():
        yield gauge(name, text, LABELS, ((key, found.get(figure)) for key, found in runs.items()))
    text = "From a request's intended arrival to its end."
    stats = (((*key, stat), found["sojourn_s"].get(stat)) for key, found in runs.items() for stat in SOJOURN)
    yield gauge("farm_queueing_sojourn_seconds", text, (*LABELS, "stat"), stats)


def _newest(connection: Transaction) -> Runs:
    """Return the newest runs; one that cannot be read is left out, and logged."""
    runs: dict[str, tuple[tuple[str, str, str], dict[str, Any]]] = {}
    for row in queue_runs.newest(connection, MOST_EXPERIMENTS):
        found = readable(f"queueing run {row.id}", partial(_read, row.summary))
        if found is not None:
            told = {**found, "began_at": row.began_at, "requests": row.requests}
            if "doubts" in found:
                told["warnings"] = len(found["doubts"])
            runs[row.name] = ((row.name, found["policy"], row.source), told)
    return dict(runs.values())


def _read(summary: bytes) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(unpack(summary))
    return {**found, "policy": str(found["policy"]), "sojourn_s": dict(found["sojourn_s"])}
