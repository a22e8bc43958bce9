"""Records -> blocks of times with the columns by which they can be grouped. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from orchestrator.model.device import Source
from orchestrator.model.job import Cell
from orchestrator.model.record import Outcome, Record
from orchestrator.statistics import NS_PER_MS, newest_attempts, timed_ms

Value = int | float | str | bool


@dataclass(frozen=True)
class Measured:
    """The times of one block: of whole inferences, or of one layer."""

    columns: Mapping[str, Value]
    """device, network, backend, precision, every axis of the cell; and layer."""
    times_ms: tuple[float, ...]
    foreign: bool
    """Imported: nobody knows how it was repeated unless it says blocks."""


def measured_runs(records: Iterable[Record], cells: Mapping[str, Cell]) -> Iterator[Measured]:
    """Timed whole inferences of the blocks that went well."""
    for record in _good(records):
        if times := timed_ms(record):
            yield Measured(_columns(record, cells), tuple(times), record.source is Source.IMPORT)


def measured_layers(records: Iterable[Record], cells: Mapping[str, Cell]) -> Iterator[Measured]:
    """Times of each layer; several steps of one layer in one profiled pass are one time."""
    for record in _good(records):
        passes: dict[str, dict[int, float]] = {}
        for layer in record.layers:
            own = passes.setdefault(layer.layer, {})
            own[layer.repeat] = own.get(layer.repeat, 0.0) + layer.duration_ns / NS_PER_MS
        columns = _columns(record, cells)
        for name, times in passes.items():
            yield Measured({**columns, "layer": name}, tuple(times.values()), record.source is Source.IMPORT)


def _good(records: Iterable[Record]) -> list[Record]:
    """In the order in which they were taken: by their tokens."""
    newest = [record for record in newest_attempts(records) if record.role == "work"]
    return sorted((record for record in newest if record.outcome is Outcome.OK), key=lambda record: record.token)


def _columns(record: Record, cells: Mapping[str, Cell]) -> dict[str, Value]:
    cell = cells[record.cell_id]
    return {
        "device": record.device.serial,
        "network": cell.workload.label,
        "backend": str(cell.backend),
        "precision": str(cell.precision),
        **cell.options,
    }
