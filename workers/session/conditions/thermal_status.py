"""Check Android's thermal status: 0 none, 1 light, ... 6 shutdown."""

from __future__ import annotations

from orchestrator.model.device import DeviceState
from orchestrator.model.errors import ConditionNotMet
from orchestrator.model.experiment import Conditions


class ThermalStatus:
    name = "thermal_status"

    def wanted(self, conditions: Conditions) -> str:
        return f"at most {conditions.thermal_status_max}"

    def describe(self, state: DeviceState) -> str:
        return "" if state.thermal_status is None else str(state.thermal_status)

    def check(self, state: DeviceState, wanted: Conditions, reference_c: float | None) -> None:  # noqa: ARG002 (a verdict)
        status = state.thermal_status
        if status is not None and status > wanted.thermal_status_max:
            raise ConditionNotMet(
                f"cooling: thermal status {status}, above {wanted.thermal_status_max}",
                remedy="let it cool, or raise conditions.thermal_status_max",
                retry_after_s=60.0 * (status - wanted.thermal_status_max),
            )
