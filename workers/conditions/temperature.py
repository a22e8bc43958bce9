"""Temperature of the battery at most so high."""

from __future__ import annotations

from orchestrator.errors import ConditionNotMet
from orchestrator.model.device import DeviceState
from orchestrator.model.experiment import Conditions

COOLING_S_PER_C = 60.0
"""A phone at rest loses about a degree a minute."""


class BatteryTemperature:
    def check(self, state: DeviceState, wanted: Conditions) -> None:
        temp_c = state.battery_temp_c
        if temp_c is not None and temp_c > wanted.battery_temp_max:
            raise ConditionNotMet(
                f"cooling: battery at {temp_c:g} C, above {wanted.battery_temp_max:g} C",
                remedy="let it cool, or raise conditions.battery_temp_max",
                retry_after_s=max(30.0, (temp_c - wanted.battery_temp_max) * COOLING_S_PER_C),
            )
