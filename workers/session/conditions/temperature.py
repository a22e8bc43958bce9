"""Check that the temperature of the battery is within its bounds."""

from __future__ import annotations

from orchestrator.model.device import DeviceState
from orchestrator.model.errors import ConditionNotMet
from orchestrator.model.experiment import Conditions

from .cooling import wait_s


class BatteryTemperature:
    name = "battery_temp"

    def wanted(self, conditions: Conditions) -> str:
        low = "" if conditions.battery_temp_min is None else f"{conditions.battery_temp_min:g} C to "
        return f"{low or 'at most '}{conditions.battery_temp_max:g} C"

    def describe(self, state: DeviceState) -> str:
        return "" if state.battery_temp_c is None else f"{state.battery_temp_c:g} C"

    def check(self, state: DeviceState, wanted: Conditions, reference_c: float | None) -> None:
        temp_c, slope = state.battery_temp_c, state.battery_slope_c_per_min
        if temp_c is None:
            return
        if temp_c > wanted.battery_temp_max:
            raise ConditionNotMet(
                f"cooling: battery at {temp_c:g} C, above {wanted.battery_temp_max:g} C",
                remedy="let it cool, or raise conditions.battery_temp_max",
                retry_after_s=wait_s(temp_c, wanted.battery_temp_max, slope, reference_c),
            )
        if wanted.battery_temp_min is not None and temp_c < wanted.battery_temp_min:
            raise ConditionNotMet(
                f"cold: battery at {temp_c:g} C, below {wanted.battery_temp_min:g} C",
                remedy="let it warm up, or lower conditions.battery_temp_min",
                retry_after_s=wait_s(temp_c, wanted.battery_temp_min, slope, reference_c),
            )
