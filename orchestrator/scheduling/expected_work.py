"""How long the waiting jobs of an experiment will take, learnt from blocks that have ended, for policies that ask."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from statistics import mean

from orchestrator.analysis.block_times import BlockTimes
from orchestrator.ledger import Ledger
from orchestrator.ledger.queue.outlook import Outlook
from orchestrator.model.device import Device

from .seldom import Seldom

SHARE = 0.02
"""Of the time, for learning."""


class ExpectedWork:
    """Remembers what it found for a while."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._seldom = Seldom(SHARE)
        self._known: dict[str, float | None] = {}

    def of(self, experiments: Collection[str], devices: Mapping[str, Device]) -> Mapping[str, float | None]:
        """Experiment -> seconds, or None. Raises ServiceDown."""
        if experiments and (self._seldom.due or not self._known.keys() >= set(experiments)):
            with self._seldom.doing():
                models = {serial: device.facts.model for serial, device in devices.items()}
                self._known = {each: expected_s(self._ledger.outlook(each), models) for each in experiments}
        return self._known


def expected_s(outlook: Outlook, models: Mapping[str, str]) -> float | None:
    """Where the experiment has all its devices: as long as that choice of devices that has most to do."""
    times = BlockTimes(outlook.took_s, models)
    if not times:
        return None
    lasts: dict[tuple[str, ...], float] = defaultdict(float)
    for work in outlook.work:
        block_s = mean(mean(times.learnt(work.cell_id, serial)) for serial in work.candidates[:LOOKED_AT])
        lasts[work.candidates] += work.blocks * block_s / len(work.candidates)
    return max(lasts.values(), default=0.0)


LOOKED_AT = 16
"""Devices of a choice whose times are asked for."""
