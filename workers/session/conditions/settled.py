"""Check that the battery is near its temperature at rest and hardly changes (measurement protocol, step 6)."""

from __future__ import annotations

from orchestrator.model.device import DeviceState
from orchestrator.model.errors import ConditionNotMet, Unsupported
from orchestrator.model.experiment import SETTLED_C, SETTLED_C_PER_MIN, Conditions

from .cooling import settle_s, wait_s

WATCHED_S = 60.0
"""Pause before the next look at a phone that was not watched for two minutes yet."""


class Settled:
    name = "settled"

    def wanted(self, conditions: Conditions) -> str:
        return f"within {SETTLED_C:g} C of rest, slope below {SETTLED_C_PER_MIN:g} C/min" if conditions.settled else ""

    def describe(self, state: DeviceState) -> str:
        if state.battery_temp_c is None or state.battery_slope_c_per_min is None:
            return ""
        return f"{state.battery_temp_c:g} C, {state.battery_slope_c_per_min:+.2f} C/min"

    def check(self, state: DeviceState, wanted: Conditions, reference_c: float | None) -> None:
        temp_c, slope = state.battery_temp_c, state.battery_slope_c_per_min
        if not wanted.settled or temp_c is None:
            return
        if reference_c is None:
            raise no_reference()
        if abs(temp_c - reference_c) > SETTLED_C:
            target_c = reference_c + (SETTLED_C if temp_c > reference_c else -SETTLED_C)
            word = "cooling" if temp_c > reference_c else "warming up"
            raise ConditionNotMet(
                f"{word}: battery at {temp_c:g} C, at rest it has {reference_c:g} C",
                remedy="leave it alone, or leave out conditions.settled",
                retry_after_s=wait_s(temp_c, target_c, slope, reference_c),
            )
        if slope is None:
            raise ConditionNotMet(
                "its temperature was not watched for two minutes yet",
                remedy="wait, or leave out conditions.settled",
                retry_after_s=WATCHED_S,
            )
        if abs(slope) >= SETTLED_C_PER_MIN:
            raise ConditionNotMet(
                f"settling: its battery changes by {slope:+.2f} C a minute, wanted is less than {SETTLED_C_PER_MIN:g}",
                remedy="leave it alone, or leave out conditions.settled",
                retry_after_s=settle_s(temp_c, slope, SETTLED_C_PER_MIN, reference_c),
            )


def no_reference() -> Unsupported:
    return Unsupported(
        "its temperature at rest is not known",
        remedy="`farm enrol SERIAL` finds it; or give `reference_temp` in the wiring file (docs/howto/conditions.md)",
    )
