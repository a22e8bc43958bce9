"""Remember for a while what was learnt of experiments: it costs looks at the ledger."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Generic, TypeVar

from orchestrator.model.device import Device

from .seldom import Seldom

SHARE = 0.02
"""Of the time, for learning."""
T = TypeVar("T")


class Learnt(Generic[T]):
    """`learn`: from an experiment's id, and the models of all devices by serial."""

    def __init__(self, learn: Callable[[str, Mapping[str, str]], T]) -> None:
        self._learn = learn
        self._seldom = Seldom(SHARE)
        self._known: dict[str, T] = {}

    def of(self, experiments: Collection[str], devices: Mapping[str, Device]) -> Mapping[str, T]:
        """By experiment. Raises ServiceDown."""
        if experiments and (self._seldom.due or not self._known.keys() >= set(experiments)):
            with self._seldom.doing():
                models = {serial: device.facts.model for serial, device in devices.items()}
                self._known = {each: self._learn(each, models) for each in experiments}
        return self._known
