"""A condition of an experiment: a gate that must be open, or a setting that is changed for the block and put back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from orchestrator.model.device import DeviceState
from orchestrator.model.experiment import Conditions
from workers.connection.base import DeviceConnection


class Gate(Protocol):
    """Something that can only be waited for."""

    name: str

    def wanted(self, conditions: Conditions) -> str:
        """Return what is wanted, for people; empty: nothing."""
        ...

    def describe(self, state: DeviceState) -> str:
        """Return what the device says, for people; empty: it does not tell."""
        ...

    def check(self, state: DeviceState, wanted: Conditions, reference_c: float | None) -> None:
        """Raises ConditionNotMet, with the time after which another look is worth while.

        `reference_c`: battery temperature of the device at rest. A fact that the device does not tell is no obstacle:
        it is recorded as unknown, and the record says that the condition is unproven.
        """
        ...


class Held(NamedTuple):
    """The state of a setting after switching it."""

    value: str
    """The value as read back; empty: the phone does not tell."""
    proven: bool = True


class Setting(Protocol):
    """Something of the phone that can be switched."""

    permission: str
    """The right of the shell that `check` finds out, as the device's profile names it; empty: none."""

    def wanted(self, conditions: Conditions) -> str:
        """Return what is wanted, for people; empty: nothing."""
        ...

    def check(self, connection: DeviceConnection) -> None:
        """Raises Unsupported where this phone cannot be switched so; leaves it as it is outside of sessions."""
        ...

    def save(self, connection: DeviceConnection) -> dict[str, str]:
        """The present values, as `restore` takes them."""
        ...

    def prepare(self, connection: DeviceConnection) -> Held:
        """Switch, and read back. Raises ConditionNotMet where the phone does not comply, Unsupported."""
        ...

    def restore(self, connection: DeviceConnection, saved: Mapping[str, str]) -> None: ...
