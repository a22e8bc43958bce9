"""Records -> statistics: what was measured, how precisely, and what casts a doubt on it. Pure and derived.

The independent unit is the block (a fresh agent process), not the inference: samples of one block share clocks, heat
and memory layout. So the latency of a cell on a device is the median over its blocks' medians, and its interval
resamples blocks (percentile bootstrap: Efron, "Bootstrap Methods: Another Look at the Jackknife", 1979). With fewer
than `MIN_BLOCKS` blocks there is no interval.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from statistics import median

from pydantic import Field

from .model.base import Model
from .model.device import Source
from .model.job import Cell
from .model.record import Doubt, Outcome, Record, RunsOn

RESAMPLES = 2000
MIN_BLOCKS = 3
NS_PER_MS = 1e6


class Interval(Model):
    """A 95 % interval, in the unit of its median."""

    low: float
    high: float


class Latency(Model):
    """Of the timed samples of the blocks that went well, in ms."""

    blocks: int = Field(ge=1)
    samples: int = Field(ge=1)
    median_ms: float
    """Median over blocks of the blocks' medians."""
    interval_ms: Interval | None
    """95 % interval of the median, over blocks; None with fewer than three."""
    mad_ms: float
    """Median absolute deviation of all samples from their median."""
    min_ms: float
    p90_ms: float
    p99_ms: float


class LayerTime(Model):
    """Device time of one step of the plan, from the profiled passes."""

    index: int
    layer: str
    program: str
    median_ms: float


class MemoryUse(Model):
    """Medians over blocks, in bytes; the figures have different meanings and are never added up."""

    device_peak_bytes: int
    vm_hwm_bytes: int
    pss_bytes: int | None


class Summary(Model):
    """One cell on one device."""

    serial: str
    model: str
    profile: str
    """Of a virtual phone; empty elsewhere."""
    source: Source
    cell_id: str
    label: str
    workload: str
    backend: str
    precision: str
    runs_on: RunsOn | None
    """Driver and device that really ran; None where no block got that far."""
    outcomes: dict[Outcome, int]
    """Of the attempt that counts of each block: the one with the newest token."""
    blocks: int
    """Blocks with a record."""
    latency: Latency | None
    """None where no block went well."""
    setup_ms: dict[str, float]
    """Median over blocks of each set-up step, in the order of the agent."""
    slowest_setup_ms: float = 0.0
    """Of the block with the longest set-up: often the first, which compiles what later ones find in a cache."""
    layers: tuple[LayerTime, ...] = ()
    memory: MemoryUse | None = None
    doubts: tuple[Doubt, ...] = ()
    """Every doubt of any block, once."""
    reasons: tuple[str, ...] = ()
    """Why blocks did not go well, each once."""


def summarise(records: Iterable[Record], cells: Mapping[str, Cell], seed: int = 1) -> list[Summary]:
    """One summary per device and cell, ordered by workload, device, backend and precision.

    `cells`: the experiment's cells by id. Of several attempts at a block the newest counts. The same records and seed
    give the same numbers, in whatever order the records come.
    """
    newest = newest_attempts(records)
    keyed = sorted(newest, key=lambda r: (r.device.serial, r.cell_id, r.block))
    groups = [list(group) for _, group in groupby(keyed, key=lambda r: (r.device.serial, r.cell_id))]
    summaries = [_summary(group, cells[group[0].cell_id], seed) for group in groups]
    return sorted(summaries, key=lambda s: (s.workload, s.serial, s.backend, s.precision, s.label))


def newest_attempts(records: Iterable[Record]) -> list[Record]:
    """The record with the newest token of each job."""
    newest: dict[str, Record] = {}
    for record in records:
        known = newest.get(record.job_id)
        if known is None or record.token > known.token:
            newest[record.job_id] = record
    return list(newest.values())


def _summary(records: Sequence[Record], cell: Cell, seed: int) -> Summary:
    first = records[0]
    good = [record for record in records if record.outcome is Outcome.OK]
    return Summary(
        serial=first.device.serial,
        model=first.device.model,
        profile=first.device.profile,
        source=first.source,
        cell_id=first.cell_id,
        label=cell.label,
        workload=cell.workload.label,
        backend=cell.backend.value,
        precision=cell.precision.value,
        runs_on=next((record.runs_on for record in (*good, *records) if record.runs_on), None),
        outcomes=dict(Counter(record.outcome for record in records)),
        blocks=len(records),
        latency=latency([timed_ms(record) for record in good], seed),
        setup_ms=setup_medians(good),
        slowest_setup_ms=max((total_setup_ms(record) for record in good), default=0.0),
        layers=layer_medians(good),
        memory=memory_medians(good),
        doubts=tuple({(d.code, d.detail): d for record in records for d in record.doubts}.values()),
        reasons=tuple(dict.fromkeys(reason for record in records for reason in record.reasons)),
    )


def timed_ms(record: Record) -> list[float]:
    """Durations of a block's timed samples."""
    return [sample.duration_ns / NS_PER_MS for sample in record.samples if sample.phase == "timed"]


def latency(blocks: Sequence[Sequence[float]], seed: int = 1) -> Latency | None:
    """Statistics of blocks of timed samples in ms; None where there is no sample."""
    kept = [list(block) for block in blocks if block]
    if not kept:
        return None
    samples = sorted(sample for block in kept for sample in block)
    middle = median(samples)
    medians = sorted(median(block) for block in kept)
    return Latency(
        blocks=len(kept),
        samples=len(samples),
        median_ms=median(medians),
        interval_ms=bootstrap_median(medians, seed),
        mad_ms=median(abs(sample - middle) for sample in samples),
        min_ms=samples[0],
        p90_ms=percentile(samples, 90),
        p99_ms=percentile(samples, 99),
    )


def bootstrap_median(values: Sequence[float], seed: int = 1) -> Interval | None:
    """95 % percentile bootstrap interval of the median; None with fewer than `MIN_BLOCKS` values."""
    if len(values) < MIN_BLOCKS:
        return None
    generator = random.Random(seed)
    medians = sorted(median(generator.choices(values, k=len(values))) for _ in range(RESAMPLES))
    return Interval(low=percentile(medians, 2.5), high=percentile(medians, 97.5))


def percentile(ordered: Sequence[float], q: float) -> float:
    """The q-th percentile of sorted values, linear between neighbours (Hyndman & Fan, type 7)."""
    position = (len(ordered) - 1) * q / 100
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    low, high = ordered[below], ordered[above]
    return min(high, low + (high - low) * (position - below))


def setup_medians(records: Sequence[Record]) -> dict[str, float]:
    """Median over records of the total time of each set-up step, ms, in order of first appearance."""
    totals: dict[str, list[float]] = {}
    for record in records:
        steps: Counter[str] = Counter()
        for step in record.setup:
            steps[step.step] += step.duration_ns
        for name, duration_ns in steps.items():
            totals.setdefault(name, []).append(duration_ns / NS_PER_MS)
    return {name: median(values) for name, values in totals.items()}


def total_setup_ms(record: Record) -> float:
    """Set-up time of a block, without the wait for the engine slot."""
    return sum(step.duration_ns for step in record.setup if step.step != "slot") / NS_PER_MS


def layer_medians(records: Sequence[Record]) -> tuple[LayerTime, ...]:
    """Median over all profiled passes of each step, in the plan's order."""
    times: dict[tuple[int, str, str], list[float]] = {}
    for record in records:
        for layer in record.layers:
            times.setdefault((layer.index, layer.layer, layer.program), []).append(layer.duration_ns / NS_PER_MS)
    return tuple(
        LayerTime(index=index, layer=layer, program=program, median_ms=median(values))
        for (index, layer, program), values in sorted(times.items())
    )


def memory_medians(records: Sequence[Record]) -> MemoryUse | None:
    """Medians over records that have memory figures."""
    found = [record.memory for record in records if record.memory is not None]
    if not found:
        return None
    pss = [use.pss_bytes for use in found if use.pss_bytes is not None]
    return MemoryUse(
        device_peak_bytes=int(median(use.device_peak_bytes for use in found)),
        vm_hwm_bytes=int(median(use.vm_hwm_bytes for use in found)),
        pss_bytes=int(median(pss)) if pss else None,
    )
