"""Check that the charge of the battery is within its window."""

from __future__ import annotations

from orchestrator.model.device import DeviceState
from orchestrator.model.errors import ConditionNotMet
from orchestrator.model.experiment import Conditions

CHARGE_S_PER_PERCENT = 60.0
"""A phone on a hub's port gains about a percent a minute, and loses one less quickly."""


class BatteryCharge:
    name = "battery_percent"

    def wanted(self, conditions: Conditions) -> str:
        low, high = conditions.battery_percent.min, conditions.battery_percent.max
        if low is None and high is None:
            return ""
        return f"{0 if low is None else low:g} to {100 if high is None else high:g} %"

    def describe(self, state: DeviceState) -> str:
        return "" if state.battery_percent is None else f"{state.battery_percent:g} %"

    def check(self, state: DeviceState, wanted: Conditions, reference_c: float | None) -> None:  # noqa: ARG002 (no heat)
        percent, window = state.battery_percent, wanted.battery_percent
        if percent is None:
            return
        if window.min is not None and percent < window.min:
            raise ConditionNotMet(
                f"battery at {percent:g} %, below {window.min:g} %",
                remedy="charge it, or lower conditions.battery_percent.min",
                retry_after_s=max(60.0, (window.min - percent) * CHARGE_S_PER_PERCENT),
            )
        if window.max is not None and percent > window.max:
            raise ConditionNotMet(
                f"battery at {percent:g} %, above {window.max:g} %",
                remedy="cut its supply, or raise conditions.battery_percent.max",
                retry_after_s=max(60.0, (percent - window.max) * 2 * CHARGE_S_PER_PERCENT),
            )
