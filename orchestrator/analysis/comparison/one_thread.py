"""Compute the speed-up of a stream over one CPU thread of the same device, as study C does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from orchestrator.analysis.statistics import Summary
from orchestrator.figures import BlockFigures
from orchestrator.figures.one_block import frames_per_s
from orchestrator.model.device import Api
from orchestrator.model.job import Cell

from .cell_blocks import Place, Ratio, blocks_by_cell, quotient
from .ratio import Block

REFERENCE = "sequential"
"""The definition on one thread: nobody's baseline."""


def with_gains(
    summaries: Iterable[Summary], blocks: Iterable[BlockFigures], cells: Mapping[str, Cell]
) -> list[Summary]:
    """The summaries, those of streams with their gain where one thread of the CPU was measured too.

    The baseline has the same workload, precision, frames and fusion, and the same algorithm where that was measured;
    otherwise `im2col`, which is the study's.
    """
    found, rates = list(summaries), blocks_by_cell(blocks, frames_per_s)
    known = [summary for summary in found if summary.throughput and summary.throughput.frames_per_s is not None]
    bases = [summary for summary in known if _is_base(cells[summary.cell_id])]
    return [
        summary if base is None else _with_gain(summary, quotient(_of(base, rates), _of(summary, rates), "throughput"))
        for summary, base in ((each, _base_of(each, bases, cells)) for each in found)
    ]


def _is_base(cell: Cell) -> bool:
    asked = cell.options
    return (
        cell.backend is Api.CPU
        and asked.get("threads") == 1
        and asked.get("pipeline", "none") == "none"
        and not asked.get("pin_threads", False)
        and asked.get("algorithm") != REFERENCE
    )


def _base_of(summary: Summary, bases: Iterable[Summary], cells: Mapping[str, Cell]) -> Summary | None:
    own = cells[summary.cell_id]
    alike = {
        cells[base.cell_id].options.get("algorithm"): base for base in bases
        if (base.serial, base.source) == (summary.serial, summary.source)
        and _same_work(cells[base.cell_id], own)
    }  # fmt: skip
    return alike.get(own.options.get("algorithm")) or alike.get("im2col")


def _same_work(one: Cell, other: Cell) -> bool:
    options = [(cell.options.get("fuse"), cell.frames, cell.batch) for cell in (one, other)]
    return one.workload == other.workload and one.precision == other.precision and options[0] == options[1]


def _of(summary: Summary, rates: Mapping[Place, Sequence[Block]]) -> Sequence[Block]:
    return rates.get((summary.serial, summary.source, summary.cell_id), ())


def _with_gain(summary: Summary, gain: Ratio | None) -> Summary:
    if summary.throughput is None or summary.throughput.frames_per_s is None or gain is None:
        return summary
    names = "over_one_thread", "over_one_thread_interval", "over_one_thread_unresolved"
    update = dict(zip(names, gain, strict=True))
    return summary.model_copy(update={"throughput": summary.throughput.model_copy(update=update)})
