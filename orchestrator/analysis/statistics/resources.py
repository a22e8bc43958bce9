"""Summarise layers and memory by medians over a cell's blocks."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from orchestrator.figures import QUANTITIES, BlockFigures, LayerTime
from orchestrator.figures.one_block import void_of
from orchestrator.model.base import Model
from orchestrator.model.record import LayerMemory

from .energies import TOO_SHORT
from .intervals import Interval
from .resolution import Unresolved, median_of


class MemoryUse(Model):
    """Medians over blocks, in bytes; the figures have different meanings and are never added up."""

    device_peak_bytes: float
    vm_hwm_bytes: float
    pss_bytes: float | None


def layer_medians(blocks: Sequence[BlockFigures]) -> tuple[LayerTime, ...]:
    """Median over blocks of each step's medians over a block's profiled passes, in the plan's order."""
    times: dict[tuple[int, str, str], list[float]] = {}
    for block in blocks:
        for step in block.per_layer.steps if block.per_layer else ():
            times.setdefault((step.index, step.layer, step.program), []).append(step.median_ms)
    return tuple(
        LayerTime(index=index, layer=layer, program=program, median_ms=median(values))
        for (index, layer, program), values in sorted(times.items())
    )


def device_ms(blocks: Sequence[BlockFigures]) -> float | None:
    """Median over blocks of the time of a whole profiled pass; None without layers."""
    found = [block.pass_ms for block in blocks if block.pass_ms is not None]
    return median(found) if found else None


def memory_medians(blocks: Sequence[BlockFigures]) -> MemoryUse | None:
    """Medians over blocks that have memory figures."""
    found = [block.memory for block in blocks if block.memory is not None]
    if not found:
        return None
    pss = [use.pss_bytes for use in found if use.pss_bytes is not None]
    return MemoryUse(
        device_peak_bytes=median(use.device_peak_bytes for use in found),
        vm_hwm_bytes=median(use.vm_hwm_bytes for use in found),
        pss_bytes=median(pss) if pss else None,
    )


class Other(Model):
    """A quantity without figures of its own, in its unit: the median over blocks."""

    value: float | None
    """None where it is not resolved."""
    interval: Interval | None = None
    unresolved: Unresolved | None = None


def other_medians(blocks: Sequence[BlockFigures], *, watched: bool = False) -> dict[str, Other]:
    """Medians over blocks, in order of time, of the quantities without figures of their own."""
    void = [void_of(each) for each in blocks]
    valid = [{n: each.values[n] for n in each.values.keys() - no} for each, no in zip(blocks, void, strict=True)]
    found = {name: [each[name] for each in valid if name in each] for name in QUANTITIES}
    told = {
        name: _told(values, watched=watched) if QUANTITIES[name].has_interval else Other(value=median(values))
        for name, values in found.items()
        if values and (len(values) == len(blocks) or not QUANTITIES[name].of_every_block)
    }
    return {name: Other(value=None, unresolved=TOO_SHORT) for name in frozenset().union(*void)} | told


def _told(values: Sequence[float], *, watched: bool) -> Other:
    value, interval, why_not = median_of(values, watched=watched)
    return Other(value=value, interval=interval, unresolved=why_not)


def planned_memory(blocks: Sequence[BlockFigures]) -> tuple[LayerMemory, ...]:
    """Memory by layer of the plan; all blocks of a cell on a device run the same one."""
    return next((block.per_layer.planned for block in blocks if block.per_layer and block.per_layer.planned), ())
