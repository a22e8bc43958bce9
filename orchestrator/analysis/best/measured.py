"""Turn records into blocks of times with the columns by which they can be grouped. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from orchestrator.analysis.statistics import NS_PER_MS, timed_ms
from orchestrator.model.device import Source
from orchestrator.model.job import Cell
from orchestrator.model.record import Outcome, Record

Value = int | float | str | bool


@dataclass(frozen=True)
class Measured:
    """The times of one block: of whole inferences, or of one layer."""

    columns: Mapping[str, Value]
    """device, network, backend, precision, every axis of the cell; and layer."""
    times_ms: tuple[float, ...]
    foreign: bool
    """Imported: nobody knows how it was repeated unless it says blocks."""


def measured_runs(records: Iterable[Record], cells: Mapping[str, Cell]) -> list[Measured]:
    """Timed whole inferences of the blocks that went well."""
    return _of_good_blocks(records, lambda record: _run(record, _columns(record, cells)))


def measured_layers(records: Iterable[Record], cells: Mapping[str, Cell]) -> list[Measured]:
    """Times of each layer; several steps of one layer in one profiled pass are one time."""
    return _of_good_blocks(records, lambda record: _layers(record, _columns(record, cells)))


def _of_good_blocks(records: Iterable[Record], take: Callable[[Record], list[Measured]]) -> list[Measured]:
    """Of each job the newest attempt, where it went well, in the order of their tokens; one record in memory."""
    newest: dict[str, tuple[int, list[Measured]]] = {}
    for record in records:
        known = newest.get(record.job_id)
        if record.role == "work" and (known is None or record.token > known[0]):
            newest[record.job_id] = record.token, take(record) if record.outcome is Outcome.OK else []
    ordered = sorted(newest.values(), key=lambda kept: kept[0])
    return [measured for _, taken in ordered for measured in taken]


def _run(record: Record, columns: Mapping[str, Value]) -> list[Measured]:
    times = timed_ms(record)
    return [Measured(columns, tuple(times), _is_foreign(record))] if times else []


def _layers(record: Record, columns: Mapping[str, Value]) -> list[Measured]:
    passes: dict[str, dict[int, float]] = {}
    for layer in record.layers:
        own = passes.setdefault(layer.layer, {})
        own[layer.repeat] = own.get(layer.repeat, 0.0) + layer.duration_ns / NS_PER_MS
    return [
        Measured({**columns, "layer": name}, tuple(times.values()), _is_foreign(record))
        for name, times in passes.items()
    ]


def _is_foreign(record: Record) -> bool:
    return record.source is Source.IMPORT


def _columns(record: Record, cells: Mapping[str, Cell]) -> dict[str, Value]:
    cell = cells[record.cell_id]
    return {
        "device": record.device.serial,
        "network": cell.workload.label,
        "backend": str(cell.backend),
        "precision": str(cell.precision),
        **cell.options,
    }
