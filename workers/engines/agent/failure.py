"""Translate an error event of the agent into an error of the farm."""

from __future__ import annotations

from orchestrator.energy.validity import has_slept
from orchestrator.model.errors import AgentFault, DeviceSick, FarmError, TransientError
from workers.session.supply import PowerContaminated

from .process import AgentRun

_TRANSIENT = {"device_error", "io", "storage_full", "cancelled"}
"""Error codes of the agent that speak of the device, not of the workload; a `cancelled` not by us is a takeover."""


class DeviceSlept(TransientError):
    """The device was suspended for some of the run: nobody can tell which of its figures that touched."""

    cause = "suspended"


def raise_if_slept(run: AgentRun, serial: str) -> None:
    """Raise DeviceSlept where the phone slept in a run, as a block of a job is judged."""
    if has_slept(run.suspended_s):
        raise DeviceSlept(
            f"the phone slept for {run.suspended_s:.3f} s of a run",
            device=serial,
            remedy="switch its screen lock off, or leave it plugged in: docs/howto/conditions.md",
        )


def raise_for(run: AgentRun, serial: str) -> None:
    """Turn the agent's error, if it reported one, into ours: AgentFault or DeviceSick."""
    error = run.error
    if error is None:
        return
    step = f" in {error.step}" if error.step else ""
    if error.code == "power_contaminated":
        raise PowerContaminated(f"the agent saw no discharging battery: {error.message}", device=serial)
    kind: type[FarmError] = DeviceSick if error.code in _TRANSIENT else AgentFault
    raised: FarmError = kind(f"the agent reported {error.code}{step}: {error.message}", device=serial)
    raised.cause = error.code
    raise raised
