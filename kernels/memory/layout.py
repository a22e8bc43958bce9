"""Memory plan: lifetimes -> offsets in pools.

Greedy by size (Pisarchyk and Lee, 2020): the largest buffer first, each at the lowest offset that is free during its
whole life. Weights have pools of their own, filled in order, so that they are uploaded once; inputs and outputs too,
visible to the host. An input keeps its bytes throughout, because a plan is run many times after one upload.

Shared objects instead of offsets (`objects`): every buffer starts an allocation that others use at other times.
It takes somewhat more memory, and no sub-buffers (docs/architecture/plan.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

import numpy as np
import numpy.typing as npt

from kernels.errors import checkpoint
from kernels.lower.draft import Draft, DraftBuffer
from kernels.plan.model import Pool
from kernels.plan.steps import Span, lifetimes

POOLS = {
    "weight": "weights", "variable": "variables", "data": "data", "input": "ports", "output": "ports",
    "activation": "arena", "scratch": "arena", "offloaded": "arena",
}  # fmt: skip
WORKING = ("arena", "variables", "data")
"""Kinds of pools that no host need see: activations, and what a training keeps."""
HOST_ALIGNMENT = 256
"""Alignment of the CPU backend's buffers beside a device, which may ask for less."""


@dataclass(frozen=True)
class Place:
    """The place of a buffer."""

    pool: str
    offset: int


@dataclass(frozen=True)
class Layout:
    """Pools, and the place of every buffer that is used."""

    pools: list[Pool]
    places: dict[str, Place]


def lives_of(draft: Draft) -> dict[str, Span]:
    """Return the span from the first use of a buffer to the last: places do not change while a buffer is away."""
    spans = lifetimes(draft.steps, draft.roles, draft.waves)
    return {name: Span(own[0].first, own[-1].last) for name, own in spans.items()}


def plan_memory(
    draft: Draft, *, alignment: int, largest: int, shared: Sequence[str] = ("ports",), objects: bool = False
) -> Layout:
    """Place every used buffer; a pool is at most `largest` bytes (0: any size), unless one buffer alone is larger.

    `shared`: kinds of pools that lie in memory that the host sees too. `objects`: every buffer starts a pool.
    """
    lives = lives_of(draft)
    pools: list[Pool] = []
    places: dict[str, Place] = {}
    sides = sorted({buffer.side for buffer in draft.buffers.values()})
    for side, kind in product(sides, ("weights", "variables", "data", "ports", "arena")):
        buffers = [b for name, b in draft.buffers.items() if name in lives and (b.side, _kind(b)) == (side, kind)]
        aligned, most = (max(alignment, HOST_ALIGNMENT), 0) if side else (alignment, largest)
        layouts = _objects(buffers, lives) if objects else _layouts(buffers, lives, aligned, most)
        for index, layout in enumerate(layouts):
            name = f"{side} {kind}".lstrip() if index == 0 else f"{side} {kind}{index}".lstrip()
            size = max(offset + draft.buffers[buffer].size for buffer, offset in layout.items())
            memory: Literal["host_visible", "device"] = "host_visible" if kind in shared and not side else "device"
            pools.append(Pool(id=name, bytes=size, memory=memory, api=side))
            places.update({buffer: Place(name, offset) for buffer, offset in layout.items()})
    return Layout(pools, places)


def _kind(buffer: DraftBuffer) -> str:
    return "ports" if buffer.shared else POOLS[buffer.role]


def _layouts(
    buffers: Sequence[DraftBuffer], lives: Mapping[str, Span], alignment: int, largest: int
) -> list[dict[str, int]]:
    """Offsets by pool: a buffer goes to the first pool that it fits."""
    layouts: list[tuple[dict[str, int], _Taken]] = []
    for buffer in _in_order(buffers, lives):
        checkpoint()
        for layout, taken in layouts:  # noqa: B007
            offset = taken.lowest_offset(buffer.size, lives[buffer.id], alignment)
            if not largest or offset + buffer.size <= largest:
                break
        else:
            (layout, taken), offset = ({}, _Taken(len(buffers))), 0
            layouts.append((layout, taken))
        layout[buffer.id] = offset
        taken.add(offset, offset + buffer.size, lives[buffer.id])
    return [layout for layout, _ in layouts]


def _objects(buffers: Sequence[DraftBuffer], lives: Mapping[str, Span]) -> list[dict[str, int]]:
    """Buffers by the object that they share, the largest first: an object is as large as its first buffer."""
    shared: list[dict[str, int]] = []
    taken = _Taken(len(buffers))
    for buffer in _in_order(buffers, lives):
        checkpoint()
        index = taken.lowest_free(lives[buffer.id], len(shared))
        if index == len(shared):
            shared.append({})
        shared[index][buffer.id] = 0
        taken.add(index, index + 1, lives[buffer.id])
    return shared


class _Taken:
    """Ranges, of bytes in a pool or of whole objects, and the lives for which they are taken."""

    def __init__(self, most: int) -> None:
        self._ranges = np.empty((4, most), np.int64)
        """Begin, end, first and last time."""
        self._count = 0

    def add(self, begin: int, end: int, life: Span) -> None:
        self._ranges[:, self._count] = begin, end, life.first, life.last
        self._count += 1

    def lowest_offset(self, size: int, life: Span, alignment: int) -> int:
        """The lowest aligned offset at which nothing lies that lives at the same time."""
        begins, ends = self._during(life)
        order = np.argsort(begins, kind="stable")
        free = np.maximum.accumulate(np.concatenate(([0], -(-ends[order] // alignment) * alignment)))
        gaps = np.flatnonzero(free[:-1] + size <= begins[order])
        return int(free[gaps[0]] if len(gaps) else free[-1])

    def lowest_free(self, life: Span, count: int) -> int:
        """The first of `count` objects that nobody holds at the same time; `count` where none is free."""
        held = np.zeros(count + 1, bool)
        held[self._during(life)[0]] = True
        return int(np.argmin(held))

    def _during(self, life: Span) -> npt.NDArray[np.int64]:
        """Begins and ends of what is taken at the same time."""
        begins, ends, first, last = self._ranges[:, : self._count]
        together = (first <= life.last) & (last >= life.first)
        return np.stack((begins[together], ends[together]))


def _in_order(buffers: Sequence[DraftBuffer], lives: Mapping[str, Span]) -> list[DraftBuffer]:
    if all(buffer.role == "weight" for buffer in buffers):  # as the network reads them
        return list(buffers)
    return sorted(buffers, key=lambda b: (-b.size, lives[b.id].first, b.id))
