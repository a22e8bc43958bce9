"""Remember for a while what was learnt of experiments: it costs looks at the ledger."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Generic, TypeVar

from orchestrator.model.device import Device
from orchestrator.scheduling.seldom import Seldom

SHARE = 0.02
"""The share of the time for learning."""
MOST = 1000
"""Experiments that are remembered."""
T = TypeVar("T")


class Learnt(Generic[T]):
    """`learn`: from an experiment's id, and the models of all devices by serial."""

    def __init__(self, learn: Callable[[str, Mapping[str, str]], T]) -> None:
        self._learn = learn
        self._seldom = Seldom(SHARE)
        self._known: dict[str, T] = {}

    def of(self, experiments: Collection[str], devices: Mapping[str, Device]) -> Mapping[str, T]:
        """Return what is known by experiment. Raises ServiceDown."""
        due = list(experiments) if self._seldom.due else [each for each in experiments if each not in self._known]
        if due:
            with self._seldom.doing():
                models = {serial: device.facts.model for serial, device in devices.items()}
                found = {each: self._learn(each, models) for each in due}
                self._known = {each: known for each, known in self._known.items() if each not in found} | found
            for old in list(self._known)[: -max(MOST, len(experiments))]:
                del self._known[old]
        return self._known
