"""`farm devices`, `farm release`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.text import Text

from farm.access import none_runs
from farm.cli import completion
from farm.cli.output import HERE, Common, argument, do, group_of, log, out, print_json
from farm.doors import open_door, unserved
from orchestrator.model.device import ApiFacts, Device, Health, Precision, Source
from orchestrator.model.errors import Unsupported
from orchestrator.model.live.complaints import complaints

from .by_hand import mirror, screenshot, shell
from .inventory import describe, inventory
from .reservations import lend, reservations, reserve, unreserve

if TYPE_CHECKING:
    from orchestrator.system.config import Settings

EMPTY: tuple[Any, ...] = (None, "", 0, [], {}, False)
HEALTH_STYLES = {Health.READY: "green", Health.PROBING: "cyan", Health.SICK: "red", Health.QUARANTINED: "red"}


def show(
    serial: Annotated[
        str | None,
        argument(
            "SERIAL", "Show only this device, with all that is known about it.", autocompletion=completion.serials
        ),
    ] = None,
    common: Common = HERE,
) -> None:
    """List the devices of the running farm, or show one device with its APIs, limits and profile (`farm enrol`).

    Without a running farm, it can still show the stored profile of one device.

    Example: `farm devices`, `farm devices local-cpu --json`
    """
    settings = unserved(common.state) if serial is not None else None
    if serial is not None and settings is not None:
        _show_stored(settings, serial, common.as_json)
        return
    with open_door(common.state, running=True) as door:
        from dashboards.answers import answers

        found = door.every(answers.devices)
    if serial is None:
        if common.as_json:
            print_json(found)
        else:
            out().print(table_of(found))
        return
    device = _one(found, serial)
    if common.as_json:
        print_json(device)
    else:
        _show(device)


def release(
    serial: Annotated[str, argument("SERIAL|HOST", "Device or host to release.", autocompletion=completion.serials)],
    common: Common = HERE,
) -> None:
    """End the hold of a device, or the quarantine of a device or host: it gets work at once, and its losses are
    forgotten. Needs no running farm.

    A device goes into quarantine when it loses several attempts in a row, a host when it has several faults of its own.
    The first quarantine lasts a minute. Then the device or host gets work again on probation, if its checks pass; one
    more loss puts it back for twice as long. If a phone of this host is sick because the settings of an earlier session
    cannot be put back, `farm release` accepts the phone as it is.

    Example: `farm release R58M123ABC`
    """
    do("release", serial, common=common)


def _one(found: list[Device], serial: str) -> Device:
    for device in found:
        if device.serial == serial:
            return device
    known = ", ".join(device.serial for device in found) or "none"
    raise Unsupported(f"no device {serial!r} on this farm; there are: {known}", remedy="farm devices")


def source_label(source: Source) -> str:
    """Return a result's or device's source as it is shown: what is not real stands out."""
    return {
        Source.VIRTUAL: "[bold yellow]VIRTUAL[/]",
        Source.REPLAY: "[bold yellow]REPLAY[/]",
        Source.IMPORT: "[bold yellow]IMPORT[/]",
    }.get(source, str(source))


def table_of(found: list[Device]) -> RenderableType:
    """One row a device."""
    from orchestrator.report.listing import Listing

    rows = []
    for device in found:
        now = device.state
        health = f"[{HEALTH_STYLES.get(now.health, 'yellow')}]{now.health}[/]"
        state = " ".join(filter(None, (health, _battery(device), escape(now.reason))))
        rows.append((escape(device.serial), source_label(device.facts.source), _what(device), _apis(device), state))
    return Listing(("device", "source", "what", "APIs", "state"), rows)


def _what(device: Device) -> str:
    """`Pixel 7, Tensor G2, Mali-G710, 8.0 GiB`; a name that says two things at once is said once."""
    from orchestrator.report import wording

    facts = device.facts
    names = [wording.short_name(name) for name in (facts.model or facts.profile, facts.soc, facts.gpu) if name]
    memory = f"{facts.memory_bytes / 2**30:.1f} GiB" if facts.memory_bytes else ""
    return escape(", ".join(filter(None, (*dict.fromkeys(names), memory))))


def _apis(device: Device) -> str:
    """Names of the APIs, and which of them calculate in fp16."""
    half = {api.api for api in device.facts.apis if Precision.FP16 in api.precisions}
    return " ".join(f"{api.api}+fp16" if api.api in half else str(api.api) for api in device.facts.apis)


def _battery(device: Device) -> str:
    now = device.state
    parts = []
    if now.battery_percent is not None:
        parts.append(f"{now.battery_percent:.0f} %")
    if now.battery_temp_c is not None:
        parts.append(f"{now.battery_temp_c:.1f} C")
    if now.charging:
        parts.append("charging")
    if device.facts.tools_missing:
        parts.append(f"[yellow]lacks {escape(', '.join(device.facts.tools_missing))}[/]")
    if now.left_changed:
        parts.append(f"[red]left changed: {escape(', '.join(now.left_changed))}[/]")
    if now.health is not Health.HELD and now.ready_at is not None and now.ready_at > time.time():
        parts.append(f"ready in {now.ready_at - time.time():.0f} s")
    return " ".join(parts)


def _show(device: Device) -> None:
    """Facts, state and APIs of one device."""
    from farm.cli.engine import profile
    from orchestrator.report import wording
    from orchestrator.report.listing import Listing

    console = out()
    console.print(table_of([device]))
    skipped = {"serial", "source", "apis"}
    state = device.state.model_dump(mode="json", exclude={"reading"})
    noted = device.noted.model_dump(mode="json") if device.noted else {}
    found = {f"check: {each.check}": each.text for each in complaints(device.state)}
    rows = {
        **found,
        **noted,
        **device.facts.model_dump(mode="json", exclude=skipped),
        **state,
        "reading": _reading(device),
    }
    shown = [
        (f"[bold]{name}[/]", escape(wording.fact(name, value))) for name, value in rows.items() if value not in EMPTY
    ]
    console.print(Listing(("", ""), shown, header=False))
    for api in device.facts.apis:
        console.print(_api(api))
    if device.enrolment:
        console.print(profile.render(device.enrolment))


def _reading(device: Device) -> str:
    """Return the last reading of gauge, clocks and sensors; empty where the device does not tell."""
    found = device.state.reading
    if found is None:
        return ""
    from orchestrator.energy import battery_draw_a

    draw_a = battery_draw_a(found, device.enrolment.gauge if device.enrolment else None)
    parts = {
        "battery": None if draw_a is None else f"{draw_a:+.3f} A out",
        "CPU": found.cpu_hz and f"{found.cpu_hz / 1e6:.0f} MHz",
        "GPU": found.gpu_hz and f"{found.gpu_hz / 1e6:.0f} MHz",
        "CPU sensor": found.cpu_temp_c and f"{found.cpu_temp_c:.1f} C",
        "GPU sensor": found.gpu_temp_c and f"{found.gpu_temp_c:.1f} C",
    }
    return ", ".join(f"{name} {value}" for name, value in parts.items() if value)


def _show_stored(settings: Settings, serial: str, as_json: bool) -> None:
    """The profile in the state folder. Raises ServiceDown where there is none: then only a running farm could tell."""
    from farm.cli.engine import profile
    from workers.enrolment import store

    found = store.newest(settings.state, serial)
    if found is None:
        raise none_runs(settings)
    if as_json:
        print_json({"facts": None, "state": None, "enrolment": found})
    else:
        log().print(f"[dim]no farm runs on {settings.state}: this is what was stored[/]")
        out().print(profile.render(found))


def _api(api: ApiFacts) -> RenderableType:
    from orchestrator.report import wording
    from orchestrator.report.listing import Listing

    facts = api.model_dump(mode="json", exclude={"api", "device_name"})
    rows = [(name, escape(wording.fact(name, value))) for name, value in facts.items() if value not in EMPTY]
    return Group(Text(f"{api.api}: {api.device_name}"), Listing(("", ""), rows, header=False, indent=2))


group = group_of(
    "devices",
    (show, reserve, lend, reservations, unreserve, describe, inventory, screenshot, shell, mirror),
    "List, show and describe the devices of the farm, and reserve them for people and projects.\n\n"
    "`farm devices show` may be written `farm devices`.\n\n"
    "Example: `farm devices`, `farm devices local-cpu --json` (`--state DIR`)",
    implied=lambda _: True,
)
