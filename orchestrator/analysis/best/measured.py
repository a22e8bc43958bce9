"""Turn figures of blocks into mean times with the columns by which they can be grouped. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from orchestrator.analysis.figures import BlockFigures, Mean
from orchestrator.analysis.statistics import newest_attempts
from orchestrator.model.device import Source
from orchestrator.model.job import Cell
from orchestrator.model.record import Outcome

Value = int | float | str | bool


@dataclass(frozen=True)
class Measured:
    """The times of one block: of whole inferences, or of one layer."""

    columns: Mapping[str, Value]
    """device, network, backend, precision, every axis of the cell; and layer."""
    times: Mean
    foreign: bool
    """Imported: nobody knows how it was repeated unless it says blocks."""


def measured_runs(blocks: Iterable[BlockFigures], cells: Mapping[str, Cell]) -> list[Measured]:
    """Timed whole inferences of the blocks that went well."""
    return [Measured(_columns(block, cells), block.times, _is_foreign(block)) for block in _good(blocks) if block.times]


def measured_layers(blocks: Iterable[BlockFigures], cells: Mapping[str, Cell]) -> list[Measured]:
    """Times of each layer; several steps of one layer in one profiled pass are one time."""
    return [
        Measured({**_columns(block, cells), "layer": name}, times, _is_foreign(block))
        for block in _good(blocks)
        if block.per_layer
        for name, times in block.per_layer.layers.items()
    ]


def _good(blocks: Iterable[BlockFigures]) -> Iterator[BlockFigures]:
    """Of each job the newest attempt, where it went well, in the order of their tokens."""
    for block in sorted(newest_attempts(blocks), key=lambda block: block.token):
        if block.role == "work" and block.outcome is Outcome.OK:
            yield block


def _is_foreign(block: BlockFigures) -> bool:
    return block.source is Source.IMPORT


def _columns(block: BlockFigures, cells: Mapping[str, Cell]) -> dict[str, Value]:
    cell = cells[block.cell_id]
    return {
        "device": block.serial,
        "network": cell.workload.label,
        "backend": str(cell.backend),
        "precision": str(cell.precision),
        **cell.options,
    }
