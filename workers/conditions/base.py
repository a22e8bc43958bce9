"""A condition of an experiment: a gate that must be open, or a setting that is changed for the block and put back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from orchestrator.model.device import DeviceState
from orchestrator.model.experiment import Conditions
from workers.device.base import DeviceConnection


class Gate(Protocol):
    """Something that can only be waited for."""

    def check(self, state: DeviceState, wanted: Conditions) -> None:
        """Raises ConditionNotMet, with the time after which another look is worth while.

        A fact that the device does not tell is no obstacle: it is recorded as unknown.
        """
        ...


class Setting(Protocol):
    """Something of the phone that can be switched."""

    def wanted(self, conditions: Conditions) -> bool: ...

    def save(self, connection: DeviceConnection) -> dict[str, str]:
        """The present values, as `restore` takes them."""
        ...

    def prepare(self, connection: DeviceConnection) -> None:
        """Switch, and prove by reading back. Raises ConditionNotMet where the phone does not comply."""
        ...

    def restore(self, connection: DeviceConnection, saved: Mapping[str, str]) -> None: ...
