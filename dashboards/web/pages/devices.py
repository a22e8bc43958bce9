"""A device: what it is, how it is now, what it did last, its profile."""

from __future__ import annotations

from typing import Any

from dashboards.web.page import Asked, Page
from orchestrator.energy import battery_draw_a
from orchestrator.model.device import Device, DeviceNote
from orchestrator.model.errors import UnknownName
from orchestrator.model.live.complaints import complaints
from orchestrator.model.rights import Place
from orchestrator.report import wording

from .fleet import row_of

MOST = 40
EMPTY: tuple[Any, ...] = (None, "", 0, [], {}, False)
FACTS = (
    "host",
    "address",
    "manufacturer",
    "soc",
    "gpu",
    "abi",
    "sdk",
    "cores",
    "memory_bytes",
    "fingerprint",
    "profile",
    "tools_missing",
    "apis_missing",
)


def device(asked: Asked) -> Page:
    look, ledger, serial = asked.look(), asked.ledger(), asked.path["serial"]
    lane, past = look.lane(serial), ledger.listed.of_device(serial, MOST, asked.projects)
    if lane is None and not past and not ledger.standing.known_devices([serial]):
        raise UnknownName(f"there is no device {serial!r} on this farm", remedy="the fleet lists the devices")
    data = {
        "serial": serial,
        "row": row_of(look, lane) if lane else None,
        "hold": (hold := look.holds.get(serial)),
        "holder": hold.places if hold else [],
        "is_phone": lane is not None and lane.device.facts.kind == "phone",
        "facts": _facts(lane.device) if lane else [],
        "reading": _reading(lane.device) if lane else [],
        "apis": _apis(lane.device) if lane else [],
        "enrolment": lane.device.enrolment if lane else None,
        "complaints": complaints(lane.device.state) if lane else [],
        "past": past,
        "noted": ledger.standing.noted().get(serial, DeviceNote()).seen_by(asked.projects),
        "of_farm": Place(""),
        "was": ledger.standing.history(serial)[:MOST],
    }
    return Page("device.html.j2", serial, "fleet", data)


def _facts(found: Device) -> list[tuple[str, str]]:
    facts = found.facts.model_dump(mode="json")
    return [(name.replace("_bytes", ""), wording.fact(name, facts[name])) for name in FACTS if facts[name] not in EMPTY]


def _apis(found: Device) -> list[tuple[str, str, str, list[tuple[str, str]]]]:
    """Name, device, version, and what there is beside it."""
    more = []
    for api in found.facts.apis:
        rest = api.model_dump(mode="json", exclude={"api", "device_name", "version"})
        shown = [
            (name.replace("_", " "), wording.fact(name, value)) for name, value in rest.items() if value not in EMPTY
        ]
        more.append((api.api.value, wording.short_name(api.device_name), api.version, shown))
    return more


def _reading(found: Device) -> list[tuple[str, str]]:
    """Return the last reading of gauge, clocks and sensors."""
    state, last = found.state, found.state.reading
    told = [
        ("free storage", wording.memory_size(state.free_storage_bytes) if state.free_storage_bytes else ""),
        ("skin", f"{state.skin_temp_c:.1f} °C" if state.skin_temp_c is not None else ""),
        ("thermal status", str(state.thermal_status) if state.thermal_status is not None else ""),
        ("left changed", ", ".join(state.left_changed)),
    ]
    if last is not None:
        draw_a = battery_draw_a(last, found.enrolment.gauge if found.enrolment else None)
        told += [
            ("battery current", "" if draw_a is None else f"{draw_a:+.3f} A out"),
            ("CPU clock", f"{last.cpu_hz / 1e6:.0f} MHz" if last.cpu_hz else ""),
            ("GPU clock", f"{last.gpu_hz / 1e6:.0f} MHz" if last.gpu_hz else ""),
            ("CPU sensor", f"{last.cpu_temp_c:.1f} °C" if last.cpu_temp_c else ""),
            ("GPU sensor", f"{last.gpu_temp_c:.1f} °C" if last.gpu_temp_c else ""),
        ]
    return [(name, text) for name, text in told if text]
