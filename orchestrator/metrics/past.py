"""The past that nobody scraped, from the ledger: results, and what phones sampled in their blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from prometheus_client.parser import text_string_to_metric_families

from orchestrator.analysis.statistics import QUANTITIES, newest_attempts, summarise
from orchestrator.ledger import ExperimentRow, Ledger
from orchestrator.model.record import Outcome

from .backfill import TENTHS, samples
from .devices import READING
from .result_families import labels_of, result_families

RESULTS = frozenset(quantity.family for quantity in QUANTITIES.values())
READINGS = frozenset({*READING, *TENTHS})
MOST_RECORDS = 200
"""Newest records of an experiment whose samples are read: they are long."""


class Point(NamedTuple):
    """One sample of a series, with the labels that its panels ask for."""

    name: str
    labels: Mapping[str, str]
    at: float
    """Unix time."""
    value: float


def results(ledger: Ledger, row: ExperimentRow) -> Iterator[Point]:
    """The figures of an experiment's results as the exporter tells them, each at the end of its newest good block."""
    blocks = sorted(newest_attempts(ledger.figures(row.id)), key=lambda block: (block.started_at, block.job_id))
    work = (block for block in blocks if block.role == "work" and block.outcome is Outcome.OK)
    good = {(block.serial, block.cell_id): block.ended_at for block in work}
    cells, sampling = ledger.cells(row.id), row.experiment.sampling
    for summary in summarise(blocks, cells, mode=sampling.mode, watched=sampling.is_watched):
        at = good.get((summary.serial, summary.cell_id))
        if at is None:
            continue
        labels = labels_of(summary, cells[summary.cell_id], sampling.mode, row.experiment.name)
        for family in result_families({labels: (summary, at)}):
            if family.name in RESULTS:
                yield from (Point(each.name, each.labels, at, each.value) for each in family.samples)


def readings(ledger: Ledger, row: ExperimentRow) -> Iterator[Point]:
    """Yield what the phones of an experiment sampled, with what each of them is."""
    newest = sorted(ledger.figures(row.id), key=lambda block: block.ended_at)[-MOST_RECORDS:]
    for record in ledger.records_of({block.job_id for block in newest}):
        if record.clock is not None and record.power:
            facts = record.device
            labels = {"serial": facts.serial, "host": facts.host, "model": facts.model, "source": record.source.value}
            for name, points in samples(record, record.clock).items():
                yield from (Point(name, labels, at_ms / 1e3, value) for at_ms, value in points)


def scraped(text: str) -> list[tuple[str, dict[str, str], float]]:
    """Return name, labels and value of each sample in an exporter's text."""
    return [(each.name, each.labels, each.value) for of in text_string_to_metric_families(text) for each in of.samples]
