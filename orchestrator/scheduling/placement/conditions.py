"""The conditions of an experiment: whether a device can meet them at all, or now. Pure."""

from __future__ import annotations

from orchestrator.model.device import Device, DeviceState
from orchestrator.model.experiment import SETTLED_C, SETTLED_C_PER_MIN, Conditions
from orchestrator.model.live.queue_view import WaitingJob
from orchestrator.model.live.waiting import WaitKind, WaitReason


def can_meet(conditions: Conditions, device: Device) -> bool:
    """Return whether a device can meet the conditions at all, as far as its profile tells."""
    profile = device.enrolment
    if device.facts.kind != "phone":
        return True
    if lacking(conditions, device):
        return False
    if profile is None:
        return True
    lacks = any(profile.permissions.get(each.permission) is False for each in conditions.needs())
    return not lacks and not (conditions.supply == "cut" and profile.supply == "none")


def lacking(conditions: Conditions, device: Device) -> tuple[str, ...]:
    """The commands that the conditions need and a phone has not got."""
    wanted = {tool for each in conditions.needs() for tool in each.tools}
    return tuple(tool for tool in device.facts.tools_missing if tool in wanted)


def unmet(job: WaitingJob, device: Device) -> WaitReason | None:
    """The first thing that the device's host does not know, or condition that its announced state does not meet; what
    is not known of the state is not a bar."""
    conditions = job.conditions
    if unknown := sorted(device.unknown & job.said):
        host = device.facts.host
        text = f"the worker of host {host} does not know {unknown[0]}: update pocketfarm on {host}"
        return WaitReason(kind=WaitKind.BUSY, text=text)
    if device.facts.kind != "phone":
        return None
    unmet = {
        WaitKind.BATTERY: _unmet_level(conditions, device.state),
        WaitKind.STORAGE: _unmet_storage(conditions, device.state),
        WaitKind.SUPPLY: _unmet_supply(conditions, device.state),
        WaitKind.TEMPERATURE: _unmet_heat(conditions, device) or _unmet_rest(conditions, device),
    }
    return next((WaitReason(kind=kind, text=text) for kind, text in unmet.items() if text), None)


def _unmet_level(conditions: Conditions, state: DeviceState) -> str:
    battery, level = state.battery_percent, conditions.battery_percent
    if battery is not None and level.min is not None and battery < level.min:
        return f"battery at {battery:g} %, the experiment wants at least {level.min:g} %"
    if battery is not None and level.max is not None and battery > level.max:
        return f"battery at {battery:g} %, the experiment wants at most {level.max:g} %"
    return ""


def _unmet_storage(conditions: Conditions, state: DeviceState) -> str:
    if state.free_storage_bytes is not None and state.free_storage_bytes < conditions.free_storage:
        free, wanted = state.free_storage_bytes / 2**20, conditions.free_storage / 2**20
        return f"free storage {free:.0f} MiB, the experiment wants {wanted:.0f} MiB"
    return ""


def _unmet_supply(conditions: Conditions, state: DeviceState) -> str:
    if conditions.supply == "discharging" and state.charging:
        return "a supply is connected, the experiment wants the phone to run from its battery"
    return ""


def _unmet_heat(conditions: Conditions, device: Device) -> str:
    battery_c, skin_c = device.state.battery_temp_c, device.state.skin_temp_c
    if battery_c is not None and battery_c > conditions.battery_temp_max:
        return f"hot: {battery_c:g} C, the experiment wants at most {conditions.battery_temp_max:g} C"
    if battery_c is not None and conditions.battery_temp_min is not None and battery_c < conditions.battery_temp_min:
        return f"cold: {battery_c:g} C, the experiment wants at least {conditions.battery_temp_min:g} C"
    if skin_c is not None and conditions.skin_temp_max is not None and skin_c > conditions.skin_temp_max:
        return f"hot: skin {skin_c:.1f} C, the experiment wants at most {conditions.skin_temp_max:g} C"
    status = device.state.thermal_status
    if status is not None and status > conditions.thermal_status_max:
        return f"thermal status {status}, the experiment wants at most {conditions.thermal_status_max}"
    return ""


def _unmet_rest(conditions: Conditions, device: Device) -> str:
    temp_c, slope = device.state.battery_temp_c, device.state.battery_slope_c_per_min
    rest_c = device.enrolment.reference_temp_c if device.enrolment else None
    if not conditions.settled or temp_c is None or rest_c is None:
        return ""
    if abs(temp_c - rest_c) > SETTLED_C:
        return f"battery at {temp_c:g} C, the experiment wants it within {SETTLED_C:g} C of its rest at {rest_c:g} C"
    if slope is not None and abs(slope) >= SETTLED_C_PER_MIN:
        return f"battery changes by {slope:+.2f} C a minute, the experiment wants less than {SETTLED_C_PER_MIN:g}"
    return ""
