"""Simulate how the rest of an experiment goes: whichever device is free first takes the next block that it may run."""

from __future__ import annotations

import heapq
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestrator.ledger import Work

PARTS = 4
"""Parts of a device's share of a cell that it takes one at a time: many blocks cost few steps."""

Lasts = Callable[[str, str, int], float]
"""Cell, serial, blocks one after the other -> seconds."""


def run(work: Sequence[Work], free_at_s: Mapping[str, float], lasts: Lasts) -> float:
    """Seconds from now until all of `work` is done. `free_at_s`: device -> seconds from now until it is free; work
    without any of these devices is left out."""
    lanes: dict[tuple[str, ...], deque[tuple[str, int]]] = {}
    of_device: dict[str, list[tuple[str, ...]]] = defaultdict(list)
    for each in work:
        devices = tuple(serial for serial in each.candidates if serial in free_at_s)
        if devices and devices not in lanes:
            lanes[devices] = deque()
            for serial in devices:
                of_device[serial].append(devices)
        if devices:
            lanes[devices].append((each.cell_id, each.blocks))
    free = [(free_at_s[serial], serial) for serial in of_device]
    heapq.heapify(free)
    end_s = 0.0
    while free:
        at_s, serial = free[0]
        mine = of_device[serial]
        while mine and not lanes[mine[0]]:
            mine.pop(0)
        if not mine:
            heapq.heappop(free)
            continue
        cell_id, blocks = _take(lanes[mine[0]], len(mine[0]))
        done_s = at_s + lasts(cell_id, serial, blocks)
        end_s = max(end_s, done_s)
        heapq.heapreplace(free, (done_s, serial))
    return end_s


def _take(queue: deque[tuple[str, int]], devices: int) -> tuple[str, int]:
    """The next blocks of a lane: its cells take turns, as the blocks of a design do."""
    cell_id, left = queue.popleft()
    taken = left if devices == 1 else max(1, left // (PARTS * devices))
    if left > taken:
        queue.append((cell_id, left - taken))
    return cell_id, taken
