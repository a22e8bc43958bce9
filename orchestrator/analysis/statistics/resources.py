"""Summarise layers and memory by medians over a cell's blocks."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from orchestrator.model.base import Model
from orchestrator.model.record import LayerMemory, Record

from .samples import NS_PER_MS


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


def device_ms(records: Sequence[Record]) -> float | None:
    """Median over all profiled passes of the time of a whole pass; None without layers."""
    passes: dict[tuple[str, int], float] = {}
    for record in records:
        for layer in record.layers:
            key = (record.job_id, layer.repeat)
            passes[key] = passes.get(key, 0.0) + layer.duration_ns / NS_PER_MS
    return median(passes.values()) if passes else None


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


def planned_memory(records: Sequence[Record]) -> tuple[LayerMemory, ...]:
    """Memory by layer of the plan; all blocks of a cell on a device run the same one."""
    return next((record.layer_memory for record in records if record.layer_memory), ())
