"""Free space where the farm's folder is."""

from __future__ import annotations

from orchestrator.errors import ConditionNotMet
from orchestrator.model.device import DeviceState
from orchestrator.model.experiment import Conditions


class FreeStorage:
    def check(self, state: DeviceState, wanted: Conditions) -> None:
        free = state.free_storage_bytes
        if free is not None and free < wanted.free_storage:
            raise ConditionNotMet(
                f"{free >> 20} MiB of storage free, {wanted.free_storage >> 20} MiB wanted",
                remedy="delete files on the phone, or lower conditions.free_storage",
                retry_after_s=600.0,
            )
