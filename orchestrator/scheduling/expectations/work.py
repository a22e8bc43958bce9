"""The time that an experiment's waiting jobs will take, learnt from blocks that have ended, for policies that ask."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from statistics import mean

from orchestrator.figures.block_times import BlockTimes
from orchestrator.ledger.queue.outlook import Outlook

LOOKED_AT = 16
"""Devices of a choice whose times are asked for."""


def expected_s(outlook: Outlook, models: Mapping[str, str]) -> float | None:
    """Return the time with all of the experiment's devices: that of the choice of devices that has most to do."""
    times = BlockTimes(outlook.took_s, models)
    if not times:
        return None
    lasts: dict[tuple[str, ...], float] = defaultdict(float)
    for work in outlook.work:
        block_s = mean(mean(times.learnt(work.cell_id, serial)) for serial in work.candidates[:LOOKED_AT])
        lasts[work.candidates] += work.blocks * block_s / len(work.candidates)
    return max(lasts.values(), default=0.0)
