"""Check the free space of the file system that holds the farm's folder."""

from __future__ import annotations

from orchestrator.model.device import DeviceState
from orchestrator.model.errors import ConditionNotMet
from orchestrator.model.experiment import Conditions


class FreeStorage:
    name = "free_storage"

    def wanted(self, conditions: Conditions) -> str:
        return f"at least {conditions.free_storage >> 20} MiB" if conditions.free_storage else ""

    def describe(self, state: DeviceState) -> str:
        return "" if state.free_storage_bytes is None else f"{state.free_storage_bytes >> 20} MiB"

    def check(self, state: DeviceState, wanted: Conditions, reference_c: float | None) -> None:  # noqa: ARG002 (no heat)
        free = state.free_storage_bytes
        if free is not None and free < wanted.free_storage:
            raise ConditionNotMet(
                f"{free >> 20} MiB of storage free, {wanted.free_storage >> 20} MiB wanted",
                remedy="delete files on the phone, or lower conditions.free_storage",
                retry_after_s=600.0,
            )
