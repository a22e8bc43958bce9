"""Compare the backends of a device on the same work, and find the size from which a GPU stays ahead (study P)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from orchestrator.model.device import Api, Source

from .summary import Summary

GPU = (Api.OPENCL, Api.VULKAN)


class SideBySide(NamedTuple):
    """One workload with the same precision and options on a device."""

    serial: str
    source: Source
    workload: str
    rest: str
    """Precision and options."""
    ms: dict[str, float]
    """Median latency by backend."""


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


def side_by_side(summaries: Iterable[Summary]) -> list[SideBySide]:
    """What at least two backends of a device ran in the same way, in the order of the summaries."""
    found: dict[tuple[str, ...], SideBySide] = {}
    for summary in summaries:
        if summary.latency is None:
            continue
        rest = summary.label.removeprefix(f"{summary.workload} {summary.backend} ")
        key = (summary.serial, summary.source.value, summary.workload, rest)
        row = found.setdefault(key, SideBySide(summary.serial, summary.source, summary.workload, rest, {}))
        row.ms[summary.backend] = summary.latency.median_ms
    return [row for row in found.values() if len(row.ms) > 1]


def pays_from(rows: Iterable[SideBySide]) -> list[PaysFrom]:
    """Each single operation at two sizes or more on a GPU backend and on the CPU backend."""
    ratios: dict[tuple[str, Source, str, str, str], dict[int, float]] = {}
    for row in rows:
        family, size = _operation(row.workload)
        cpu_ms = row.ms.get(Api.CPU, 0.0)
        for backend in GPU if family and cpu_ms > 0 else ():
            if row.ms.get(backend, 0.0) > 0:
                key = (row.serial, row.source, family, row.rest, backend.value)
                ratios.setdefault(key, {})[size] = cpu_ms / row.ms[backend]
    return [
        PaysFrom(*key, sizes=tuple(sorted(by_size)), ratios=tuple(by_size[size] for size in sorted(by_size)))
        for key, by_size in ratios.items()
        if len(by_size) > 1
    ]


def _operation(workload: str) -> tuple[str, int]:
    """`("matmul", 64)` of `matmul_64`; an empty name of a whole network."""
    from kernels.frontend.networks.operations import FAMILIES

    name, _, size = workload.rpartition("_")
    return (name, int(size)) if name in FAMILIES and size.isdecimal() else ("", 0)
