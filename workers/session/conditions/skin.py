"""Check the temperature of the skin, where the phone's thermal service reports it."""

from __future__ import annotations

from orchestrator.model.device import DeviceState
from orchestrator.model.errors import ConditionNotMet
from orchestrator.model.experiment import Conditions

from .cooling import wait_s


class SkinTemperature:
    name = "skin_temp"

    def wanted(self, conditions: Conditions) -> str:
        return "" if conditions.skin_temp_max is None else f"at most {conditions.skin_temp_max:g} C"

    def describe(self, state: DeviceState) -> str:
        return "" if state.skin_temp_c is None else f"{state.skin_temp_c:.1f} C"

    def check(self, state: DeviceState, wanted: Conditions, reference_c: float | None) -> None:  # noqa: ARG002 (the battery's)
        temp_c = state.skin_temp_c
        if temp_c is not None and wanted.skin_temp_max is not None and temp_c > wanted.skin_temp_max:
            raise ConditionNotMet(
                f"cooling: skin at {temp_c:.1f} C, above {wanted.skin_temp_max:g} C",
                remedy="let it cool, or raise conditions.skin_temp_max",
                retry_after_s=wait_s(temp_c, wanted.skin_temp_max, None, None),
            )
