"""Remember the work-groups that drivers refused, in `kernel_limits.json` of the state folder.

How many registers a kernel needs is known to the driver's compiler alone. A plan asks for a work-group within the
device's limit; where the driver refuses it for one kernel, that kernel's limit is learnt and the plan compiled anew.
"""

from __future__ import annotations

import json
import threading
from pathlib import Path

from kernels.tuning import device_key
from orchestrator.model.device import Api, DeviceFacts
from orchestrator.model.event import Error
from orchestrator.model.record import Replan
from orchestrator.system.durable_files import write_durably

FILE = "kernel_limits.json"
Known = dict[str, dict[str, int]]
"""Device with its driver -> kernel -> most work-items of its work-group."""


class KernelLimits:
    """Shared by a host's threads. A damaged file is as good as none: everything in it is learnt again."""

    def __init__(self, state: Path) -> None:
        self._path = state / FILE
        self._lock = threading.Lock()

    def of(self, device: DeviceFacts, api: Api) -> dict[str, int]:
        """Kernel -> most work-items, on this device with this driver."""
        return self._read().get(_key(device, api), {})

    def learn(self, device: DeviceFacts, api: Api, refusal: Error) -> Replan | None:
        """Remember a refusal; None where it names no kernel, or one that cannot have a smaller work-group.

        The limit is what the driver told, where that is less than was asked for; else half of what was asked for.
        """
        asked, reported = refusal.work_group, refusal.work_group_limit
        limit = reported if 0 < reported < asked else asked // 2
        if not refusal.kernel or limit < 1:
            return None
        with self._lock:
            known = self._read()
            of_device = known.setdefault(_key(device, api), {})
            of_device[refusal.kernel] = min(limit, of_device.get(refusal.kernel, limit))
            write_durably(self._path, json.dumps(known, indent=1, sort_keys=True))
        return Replan(kernel=refusal.kernel, work_group=asked, limit=limit, reason=refusal.message[:500])

    def _read(self) -> Known:
        try:
            found = json.loads(self._path.read_text())
            return {key: {name: int(most) for name, most in own.items()} for key, own in found.items()}
        except (OSError, ValueError, AttributeError, TypeError):
            return {}


def _key(device: DeviceFacts, api: Api) -> str:
    facts = device.api(api)
    return device_key(api.value, facts.device_name, facts.driver) if facts else ""
