"""Results as time series: the latest figures of each combination of device, network, backend, precision and options.

Records are followed, not read again: a scrape reads those that came since the last one. Figures have the definitions of
`orchestrator/statistics/`: the median is the median over blocks of their medians, p90 is that of all samples.
"""

from __future__ import annotations

import logging
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median
from typing import NamedTuple

from prometheus_client.core import GaugeMetricFamily, Metric
from sqlalchemy import Connection, select

from orchestrator.ledger.rows import unpack
from orchestrator.ledger.tables import JOBS, RECORDS
from orchestrator.model.job import ANY_JOB
from orchestrator.model.record import Outcome, Record
from orchestrator.statistics import frames_per_s, is_stream, percentile

log = logging.getLogger(__name__)

MAX_COMBINATIONS = 1000
"""Series are kept for the combinations that were measured last."""
MAX_RECORDS = 5000
"""Newest records that a starting exporter reads."""
OVERLAP_S = 60.0
"""Records are read again for this long: transactions may commit out of order."""


class Combination(NamedTuple):
    """Labels of a result."""

    serial: str
    network: str
    backend: str
    precision: str
    options: str
    source: str


@dataclass
class _Figures:
    """What one experiment measured of a combination, block by block; a newer token replaces an older one."""

    experiment_id: str
    at: float
    blocks: dict[str, tuple[int, Record]] = field(default_factory=dict)

    def add(self, record: Record) -> None:
        self.at = max(self.at, record.ended_at)
        if self.blocks.get(record.job_id, (0, record))[0] <= record.token:
            self.blocks[record.job_id] = (record.token, record)

    def records(self) -> list[Record]:
        return [record for _, record in self.blocks.values()]


class Results:
    """The newest figures of each combination; `update` reads what is new in the ledger."""

    def __init__(self) -> None:
        self._newest: dict[Combination, _Figures] = {}
        self._labels: dict[str, tuple[str, str, str, str]] = {}
        self._seen: dict[tuple[str, int], float] = {}
        self._kept_at = float("-inf")

    def update(self, connection: Connection) -> None:
        """Take in the good records that the ledger has kept since the last call."""
        since = self._kept_at - OVERLAP_S
        fresh = (
            select(RECORDS.c.job_id, RECORDS.c.attempt, RECORDS.c.kept_at, RECORDS.c.body)
            .where(RECORDS.c.outcome == Outcome.OK.value, RECORDS.c.kept_at >= since)
            .order_by(RECORDS.c.kept_at.desc())
            .limit(MAX_RECORDS)
        )
        for row in reversed(connection.execute(fresh).all()):
            if (row.job_id, row.attempt) not in self._seen:
                self._take(connection, row.body)
            self._seen[row.job_id, row.attempt] = row.kept_at
            self._kept_at = max(self._kept_at, row.kept_at)
        self._forget()

    def _take(self, connection: Connection, body: bytes) -> None:
        try:
            record = Record.model_validate_json(unpack(body))
        except (ValueError, zlib.error) as e:  # of another version: it must not silence the others
            log.warning("a record in the ledger cannot be read and is left out: %s", e)
            return
        if record.role != "work":
            return  # a canary is no result
        network, backend, precision, options = self._cell_labels(connection, record)
        key = Combination(record.device.serial, network, backend, precision, options, record.source.value)
        figures = self._newest.get(key)
        if figures is None or figures.experiment_id != record.experiment_id:
            figures = _Figures(record.experiment_id, record.ended_at)
        self._newest.pop(key, None)
        self._newest[key] = figures  # a dict keeps the order of insertion: the least recent comes first
        figures.add(_without_bulk(record))

    def _cell_labels(self, connection: Connection, record: Record) -> tuple[str, str, str, str]:
        if record.cell_id not in self._labels:
            body = connection.execute(select(JOBS.c.body).where(JOBS.c.id == record.job_id)).scalar_one()
            cell = ANY_JOB.validate_json(unpack(body)).cell
            options = " ".join(f"{name}={value}" for name, value in sorted(cell.options.items()))
            self._labels[record.cell_id] = (cell.workload.label, str(cell.backend), str(cell.precision), options)
        return self._labels[record.cell_id]

    def _forget(self) -> None:
        for key in list(self._newest)[: max(0, len(self._newest) - MAX_COMBINATIONS)]:
            del self._newest[key]
        horizon = self._kept_at - OVERLAP_S
        self._seen = {key: at for key, at in self._seen.items() if at >= horizon}

    def families(self) -> Iterator[Metric]:
        """Latency or throughput, memory, number of blocks and time of the newest figures."""
        labels = Combination._fields
        latency = GaugeMetricFamily(
            "farm_results_latency_seconds", "Latency of one inference, latest figures.", labels=(*labels, "stat")
        )
        throughput = GaugeMetricFamily(
            "farm_results_throughput_frames_per_second", "Frames per second of streams, latest figures.", labels=labels
        )
        memory = GaugeMetricFamily(
            "farm_results_memory_bytes",
            "Memory, latest figures: device_peak is the agent's own allocations, resident_peak its VmHWM, pss its Pss.",
            labels=(*labels, "kind"),
        )
        blocks = GaugeMetricFamily("farm_results_blocks", "Blocks behind the latest figures.", labels=labels)
        measured = GaugeMetricFamily(
            "farm_results_timestamp_seconds", "When the latest figures were measured.", labels=labels
        )
        for key, figures in self._newest.items():
            records = figures.records()
            for stat, value in latency_seconds(records).items():
                latency.add_metric([*key, stat], value)
            if (rate := frames_per_second(records, _batch(key.options))) is not None:
                throughput.add_metric(key, rate)
            for kind, size in memory_bytes(records).items():
                memory.add_metric([*key, kind], size)
            blocks.add_metric(key, len(records))
            measured.add_metric(key, figures.at)
        yield from (latency, throughput, memory, blocks, measured)


def latency_seconds(records: list[Record]) -> dict[str, float]:
    """Median over blocks of their medians, and the 90th percentile of all timed samples; empty without samples, and of
    streams, whose samples are no latencies."""
    single = [record for record in records if not is_stream(record)]
    timed = [[s.duration_ns / 1e9 for s in record.samples if s.phase == "timed"] for record in single]
    blocks = [block for block in timed if block]
    if not blocks:
        return {}
    samples = sorted(sample for block in blocks for sample in block)
    return {"median": median(map(median, blocks)), "p90": percentile(samples, 90)}


def frames_per_second(records: list[Record], batch: int) -> float | None:
    """Median over blocks of their medians; None where no block is a stream."""
    blocks = [found for record in records if is_stream(record) and (found := frames_per_s(record, batch))]
    return median(map(median, blocks)) if blocks else None


def _batch(options: str) -> int:
    """Of a combination's options as they are worded: `batch=4 frames=100`."""
    found = dict(word.partition("=")[::2] for word in options.split())
    return int(found.get("batch", 1))


def memory_bytes(records: list[Record]) -> dict[str, float]:
    """Medians over blocks of each figure that the agent could read."""
    found = [record.memory for record in records if record.memory is not None]
    figures = {
        "device_peak": [use.device_peak_bytes for use in found],
        "resident_peak": [use.vm_hwm_bytes for use in found],
        "pss": [use.pss_bytes for use in found if use.pss_bytes is not None],
    }
    return {kind: median(values) for kind, values in figures.items() if values}


def _without_bulk(record: Record) -> Record:
    """What the figures need: layers and power series may be large."""
    return record.model_copy(update={"layers": (), "power": (), "setup": (), "outputs": (), "evidence": ()})
