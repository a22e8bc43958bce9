"""Check that the phone runs from its battery, with no supply connected."""

from __future__ import annotations

from orchestrator.model.device import DeviceState
from orchestrator.model.errors import ConditionNotMet
from orchestrator.model.experiment import Conditions

UNPLUG_S = 60.0
"""A person has to act: looked at again after this."""


class Discharging:
    name = "supply"

    def wanted(self, conditions: Conditions) -> str:
        return "discharging" if conditions.supply == "discharging" else ""

    def describe(self, state: DeviceState) -> str:
        return {True: "a supply is connected", False: "no supply is connected", None: ""}[state.charging]

    def check(self, state: DeviceState, wanted: Conditions, reference_c: float | None) -> None:  # noqa: ARG002 (no heat)
        if wanted.supply == "discharging" and state.charging:
            raise ConditionNotMet(
                "a supply is connected, the experiment wants the phone to run from its battery",
                remedy="unplug it and use Wi-Fi, or let the farm cut it with conditions.supply: cut",
                retry_after_s=UNPLUG_S,
            )
