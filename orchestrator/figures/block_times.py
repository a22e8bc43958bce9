"""The time that a block of a cell takes on a device, learnt from those that have ended: of the cell on the device,
else of the cell on devices of this model, else of the whole experiment."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import mean, stdev

ENOUGH = 3
"""Blocks from which a cell on a device, or on a model, is known by its own."""
GUESS = 0.5
"""The assumed deviation of a duration that was seen once, as a share of it."""


class BlockTimes:
    """`took_s`: (cell, serial) -> durations; `models`: serial -> model, of the devices that are known."""

    def __init__(self, took_s: Mapping[tuple[str, str], Sequence[float]], models: Mapping[str, str]) -> None:
        self._models = models
        self._own = took_s
        self._of_model: dict[tuple[str, str], list[float]] = defaultdict(list)
        for (cell_id, serial), durations in took_s.items():
            if models.get(serial):
                self._of_model[cell_id, models[serial]] += durations
        self._all = [each for durations in took_s.values() for each in durations]

    def __bool__(self) -> bool:
        return bool(self._all)

    def learnt(self, cell_id: str, serial: str) -> Sequence[float]:
        """The durations by which a cell on a device is known; none where no block of the experiment has ended."""
        own = self._own.get((cell_id, serial), ())
        alike = self._of_model.get((cell_id, self._models.get(serial, "")), ())
        return next((each for each in (own, alike) if len(each) >= ENOUGH), self._all)


class Drawn:
    """One way in which it may go: means as they would have come out of other blocks, and each block's own deviation."""

    def __init__(self, times: BlockTimes, chance: random.Random) -> None:
        self._times, self._chance = times, chance
        self._known: dict[int, tuple[float, float]] = {}
        self._kept: list[Sequence[float]] = []

    def lasts_s(self, cell_id: str, serial: str, blocks: int) -> float:
        """Return the time of `blocks` blocks, one after the other."""
        learnt = self._times.learnt(cell_id, serial)
        if id(learnt) not in self._known:
            self._known[id(learnt)] = self._mean_and_deviation(learnt)
            self._kept.append(learnt)  # so that its id stays its own
        mean_s, deviation_s = self._known[id(learnt)]
        return max(0.0, blocks * mean_s + math.sqrt(blocks) * self._chance.gauss(0.0, deviation_s))

    def _mean_and_deviation(self, learnt: Sequence[float]) -> tuple[float, float]:
        deviation_s = stdev(learnt) if len(learnt) >= ENOUGH else GUESS * mean(learnt)
        return max(0.0, self._chance.gauss(mean(learnt), deviation_s / math.sqrt(len(learnt)))), deviation_s
