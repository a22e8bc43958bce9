"""Turn figures of blocks into times with the columns by which they can be grouped. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from orchestrator.analysis.comparison.ratio import Block
from orchestrator.analysis.comparison.rows import nights_of
from orchestrator.analysis.statistics import Mode, block_value_ms, newest_attempts
from orchestrator.figures import BlockFigures, Mean
from orchestrator.model.device import Source
from orchestrator.model.job import Cell
from orchestrator.model.record import Outcome

Value = int | float | str | bool


@dataclass(frozen=True)
class Measured:
    """The times of one block: of whole inferences, or of one layer."""

    columns: Mapping[str, Value]
    """device, network, backend, precision, every axis of the cell; and layer."""
    block: Block
    """Its figure in ms: that of its mode; of a layer, its mean over the profiled passes."""
    samples: int
    source: Source
    """The source: a phone measured it, or what stood in for one."""

    @property
    def foreign(self) -> bool:
        """Imported: nobody knows how it was repeated unless it says blocks."""
        return self.source is Source.IMPORT


def measured_runs(blocks: Iterable[BlockFigures], cells: Mapping[str, Cell], mode: Mode = "steady") -> list[Measured]:
    """Timed whole inferences of the blocks that went well."""
    return [
        _measured(_columns(block, cells), block, night, value, block.times)
        for block, night in _good(blocks)
        if block.times and (value := block_value_ms(block, mode)) is not None
    ]


def measured_layers(blocks: Iterable[BlockFigures], cells: Mapping[str, Cell]) -> list[Measured]:
    """Times of each layer that is computed as asked; several steps of one layer in one profiled pass are one time."""
    return [
        _measured({**_columns(block, cells), "layer": name}, block, night, times.mean_ms, times)
        for block, night in _good(blocks)
        if block.per_layer
        for name, times in block.per_layer.as_asked.items()
    ]


def _measured(columns: Mapping[str, Value], of: BlockFigures, night: str, value_ms: float, times: Mean) -> Measured:
    """Rounds of an import are numbers that somebody gave: nothing is paired by them."""
    number = -of.token if of.source is Source.IMPORT else of.block
    return Measured(columns, Block(night, number, of.started_at, value_ms, times.whole), times.count, of.source)


def _good(blocks: Iterable[BlockFigures]) -> Iterator[tuple[BlockFigures, str]]:
    """Yield each job's newest attempt that went well, with its night."""
    work = [block for block in newest_attempts(blocks) if block.role == "work"]
    ordered = sorted(work, key=lambda block: (block.experiment_id, block.serial, block.started_at, block.token))
    for block, night in zip(ordered, nights_of(ordered), strict=True):
        if block.outcome is Outcome.OK:
            yield block, night


def _columns(block: BlockFigures, cells: Mapping[str, Cell]) -> dict[str, Value]:
    cell = cells[block.cell_id]
    return {
        "device": block.serial,
        "network": cell.workload.label,
        "backend": str(cell.backend),
        "precision": str(cell.precision),
        **cell.options,
    }
