"""Compare the backends of a device on the same work, and find the size from which a GPU stays ahead (study P).

Times are medians over blocks, as results have them; a ratio is their quotient, with the interval of `farm compare`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import combinations, product, starmap
from statistics import median
from typing import Literal, NamedTuple

from orchestrator.analysis.statistics import Mode, Summary, block_value_ms
from orchestrator.figures import NS_PER_MS, BlockFigures
from orchestrator.figures.one_block import first_result_ms
from orchestrator.model.axes import ENGINE
from orchestrator.model.device import OURS, Api, Source

from .cell_blocks import Ratio, blocks_by_cell, quotient
from .ratio import Block

GPU = (Api.OPENCL, Api.VULKAN)
COPIES = ("input", "readback")
"""The agent's steps that write an input and read an output."""
Counting = Literal["inference", "with copies", "with set-up"]
"""The span of a time: an inference whose input lies on the device; with writing the input and reading the output
back; or everything from a fresh process to the first result."""


class SideBySide(NamedTuple):
    """One workload with the same precision and options on a device. An axis that only some backends have (threads of
    the CPU) is no difference: each of its values stands beside what the others have."""

    serial: str
    source: Source
    workload: str
    rest: str
    """Precision and options."""
    blocks: dict[str, Sequence[Block]]
    """The blocks that count, by way (`way_of`); none of a time that is not resolved."""

    @property
    def ms(self) -> dict[str, float]:
        """Median time by way."""
        return {backend: median(block.value for block in own) for backend, own in self.blocks.items()}

    def speed_up(self, one: str, other: str) -> Ratio | None:
        """Return how many times as fast one way is as another; None where that is not known."""
        return quotient(self.blocks.get(one, ()), self.blocks.get(other, ()), "latency")


class PaysFrom(NamedTuple):
    """One operation through its sizes, on one of a device's GPU backends and on its CPU, by our engine or another."""

    serial: str
    source: Source
    operation: str
    rest: str
    backend: str
    over: str
    """The way on the CPU."""
    sizes: tuple[int, ...]
    """The sizes at which both were measured, ascending; at least two."""
    ratios: tuple[Ratio, ...]
    """The CPU's time over the GPU's at each of them: above one the GPU is faster."""

    @property
    def lead_at(self) -> int:
        """The index of the first size from which on the GPU is faster at every size, by intervals that leave 1 out;
        the number of sizes where it is not at the last."""
        behind = [index for index, ratio in enumerate(self.ratios) if not ratio.proves_more]
        return behind[-1] + 1 if behind else 0


def side_by_side(
    summaries: Iterable[Summary],
    blocks: Iterable[BlockFigures],
    mode: Mode = "steady",
    counting: Counting = "inference",
) -> list[SideBySide]:
    """Return what a device ran in at least two ways with the same axes, in the order of the summaries."""
    by_cell = blocks_by_cell(blocks, partial(_counted_ms, mode=mode, counting=counting))
    alike: dict[tuple[str, ...], list[Summary]] = {}
    for each in summaries:
        if (each.cold.total_ms if each.cold else each.latency and each.latency.median_ms) is not None:
            alike.setdefault((each.serial, each.source.value, each.workload, each.precision), []).append(each)
    return [
        SideBySide(
            serial=first.serial,
            source=first.source,
            workload=first.workload,
            rest=first.label.removeprefix(f"{first.workload} {first.backend} ").replace(f" engine={first.engine}", ""),
            blocks={
                way_of(each): found
                for each in row
                if (found := by_cell.get((each.serial, each.source, each.cell_id), ()))
            },
        )
        for group in alike.values()
        for cells in _by_shared_axes(group)
        for first, row in _rows(cells)
    ]


def way_of(each: Summary) -> str:
    """Return the backend of our own engine, or another engine with its backend: `onnxruntime cpu`."""
    return each.backend if each.engine == OURS.name else f"{each.engine} {each.backend}"


def _by_shared_axes(cells: Sequence[Summary]) -> Iterable[list[Summary]]:
    """Return groups of cells that agree in all axes that every cell has."""
    shared = sorted(set.intersection(*(set(each.options) for each in cells)) - {ENGINE.name})
    found: dict[tuple[object, ...], list[Summary]] = {}
    for each in cells:
        found.setdefault(tuple(each.options[axis] for axis in shared), []).append(each)
    return found.values()


def _rows(cells: Sequence[Summary]) -> Iterator[tuple[Summary, list[Summary]]]:
    """Cells of several ways that agree in the axes that they share, with the one that has most axes."""
    told = set()
    for first in cells:
        others = [each for each in cells if way_of(each) != way_of(first) and _agree(first, each)]
        row = [first, *others]
        is_whole = len({way_of(each) for each in row}) == len(row) and all(starmap(_agree, combinations(others, 2)))
        names = frozenset(each.cell_id for each in row)
        if others and is_whole and names not in told:  # else a cell with one axis more tells the others apart
            told.add(names)
            yield max(row, key=lambda each: len(each.options)), sorted(row, key=cells.index)


def _agree(one: Summary, other: Summary) -> bool:
    shared = (one.options.keys() & other.options.keys()) - {ENGINE.name}
    return all(one.options[axis] == other.options[axis] for axis in shared)


def pays_from(rows: Iterable[SideBySide]) -> list[PaysFrom]:
    """Each single operation at two sizes or more on a GPU backend and on the CPU, over each engine's CPU backend."""
    ratios: dict[tuple[str, Source, str, str, str, str], dict[int, Ratio]] = {}
    for row in rows:
        family, size = _operation(row.workload)
        of_cpu = sorted(way for way in row.blocks if way.split()[-1] == Api.CPU)
        for backend, cpu in product(GPU if family else (), of_cpu):
            if (ratio := row.speed_up(backend, cpu)) is not None:
                key = (row.serial, row.source, family, row.rest, backend.value, cpu)
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
