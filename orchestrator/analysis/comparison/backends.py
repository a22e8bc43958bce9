"""Compare the backends of a device on the same work, and find the size from which a GPU stays ahead (study P).

Times are medians, as results have them; ratios are those of `farm compare`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Literal, NamedTuple

from orchestrator.analysis.figures import NS_PER_MS, BlockFigures
from orchestrator.analysis.statistics import Mode, Summary, block_value_ms, first_result_ms
from orchestrator.model.device import Api, Source

from .cell_blocks import blocks_by_cell, quotient
from .ratio import Block

GPU = (Api.OPENCL, Api.VULKAN)
COPIES = ("input", "readback")
"""The agent's steps that write an input and read an output."""
Counting = Literal["inference", "with copies", "with set-up"]
"""What a time is of: an inference whose input lies on the device; with writing the input and reading the output back;
or everything from a fresh process to the first result."""


class SideBySide(NamedTuple):
    """One workload with the same precision and options on a device."""

    serial: str
    source: Source
    workload: str
    rest: str
    """Precision and options."""
    ms: dict[str, float]
    """Median latency by backend."""
    blocks: dict[str, Sequence[Block]]
    """Those that count, by backend."""

    def speed_up(self, one: str, other: str) -> float | None:
        """How many times as fast one backend is as another; None where that is not known."""
        return quotient(self.blocks.get(one, ()), self.blocks.get(other, ()), "latency")


class PaysFrom(NamedTuple):
    """One operation through its sizes, on one of a device's GPU backends and on its CPU backend."""

    serial: str
    source: Source
    operation: str
    rest: str
    backend: str
    sizes: tuple[int, ...]
    """At which both were measured, ascending; at least two."""
    ratios: tuple[float, ...]
    """The CPU's time over the GPU's at each of them: above one the GPU is faster."""

    @property
    def lead_at(self) -> int:
        """Of the first size from which on the GPU is faster at every size; their number where it is not at the last."""
        behind = [index for index, ratio in enumerate(self.ratios) if ratio <= 1]
        return behind[-1] + 1 if behind else 0


def side_by_side(
    summaries: Iterable[Summary],
    blocks: Iterable[BlockFigures],
    mode: Mode = "steady",
    counting: Counting = "inference",
) -> list[SideBySide]:
    """What at least two backends of a device ran in the same way, in the order of the summaries."""
    by_cell = blocks_by_cell(blocks, partial(_counted_ms, mode=mode, counting=counting))
    found: dict[tuple[str, ...], SideBySide] = {}
    for summary in summaries:
        if summary.latency is None:
            continue
        rest = summary.label.removeprefix(f"{summary.workload} {summary.backend} ")
        key = (summary.serial, summary.source.value, summary.workload, rest)
        row = found.setdefault(key, SideBySide(summary.serial, summary.source, summary.workload, rest, {}, {}))
        row.ms[summary.backend] = summary.latency.median_ms
        row.blocks[summary.backend] = by_cell.get((summary.serial, summary.source, summary.cell_id), ())
    return [row for row in found.values() if len(row.ms) > 1]


def pays_from(rows: Iterable[SideBySide]) -> list[PaysFrom]:
    """Each single operation at two sizes or more on a GPU backend and on the CPU backend."""
    ratios: dict[tuple[str, Source, str, str, str], dict[int, float]] = {}
    for row in rows:
        family, size = _operation(row.workload)
        for backend in GPU if family else ():
            if (ratio := row.speed_up(backend, Api.CPU)) is not None:
                key = (row.serial, row.source, family, row.rest, backend.value)
                ratios.setdefault(key, {})[size] = ratio
    return [
        PaysFrom(*key, sizes=tuple(sorted(by_size)), ratios=tuple(by_size[size] for size in sorted(by_size)))
        for key, by_size in ratios.items()
        if len(by_size) > 1
    ]


def _counted_ms(block: BlockFigures, mode: Mode, counting: Counting) -> float | None:
    if counting == "inference":
        return block_value_ms(block, mode)
    if not block.setup_ns:
        return None
    if counting == "with set-up":
        return first_result_ms(block)
    alone = block_value_ms(block, mode)
    return None if alone is None else alone + sum(block.setup_ns.get(name, 0) for name in COPIES) / NS_PER_MS


def _operation(workload: str) -> tuple[str, int]:
    """`("matmul", 64)` of `matmul_64`; an empty name of a whole network."""
    from kernels.frontend.networks.operations import FAMILIES

    name, _, size = workload.rpartition("_")
    return (name, int(size)) if name in FAMILIES and size.isdecimal() else ("", 0)
