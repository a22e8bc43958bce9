"""Probe a device: ask it for its facts and its state."""

from __future__ import annotations

import time
from typing import Literal, NamedTuple

from orchestrator.model.device import ApiFacts, DeviceFacts, DeviceState, Health, Source
from orchestrator.model.errors import DeviceSick
from orchestrator.model.event import Error, Hello, Probe, Warning
from workers.connection.base import DeviceConnection, ShellResult
from workers.connection.quote import quote

from .agent_journal import Journal
from .dumpsys import (
    CPU,
    GPU,
    SKIN,
    parse_battery,
    parse_free_bytes,
    parse_memory_bytes,
    parse_properties,
    parse_thermal,
    whole,
)
from .install import run
from .momentary import SCRIPT, clock_off, parse_nodes

ADBD = ["pidof", "adbd"]
SOURCE = "ro.pocketfarm.source"
BOOT_ID = "/proc/sys/kernel/random/boot_id"
_VENDORS = {
    "cpu-": "cpu",  # PoCL 5: `cpu-znver3-AMD EPYC`
    "pthread": "cpu",
    "pocl": "cpu",
    "llvmpipe": "cpu",
    "lavapipe": "cpu",
    "swiftshader": "cpu",
    "adreno": "adreno",
    "qualcomm": "adreno",
    "mali": "mali",
    "powervr": "powervr",
    "imagination": "powervr",
    "xclipse": "samsung",
    "nvidia": "nvidia",
    "geforce": "nvidia",
    "radeon": "amd",
    "amd": "amd",
    "advanced micro devices": "amd",
    "cpu": "cpu",
    "intel": "intel",
    "arm": "mali",
}
"""The words in a device's or vendor's name -> `gpu_vendor`; the first that fits wins."""


def gpu_vendor(*names: str) -> str:
    """Vendor of a GPU by the first name that tells it; lower case; empty where none does."""
    for name in names:
        for part, vendor in _VENDORS.items():
            if part in name.lower():
                return vendor
    return ""


class Probed(NamedTuple):
    """The agent's findings on a device."""

    hello: Hello
    apis: tuple[ApiFacts, ...]
    missing: tuple[str, ...]
    """The reasons why APIs cannot be used, in the words of the linker or the driver."""


def probe(connection: DeviceConnection, agent: str, *options: str, environment: tuple[str, ...] = ()) -> Probed:
    """Return what the agent finds on the device. Raises DeviceSick where it says nothing, or something else."""
    prefix = ("env", *environment) if environment else ()
    text = run(connection, *prefix, agent, "probe", *options, deadline_s=60.0)
    journal = Journal(connection.serial)
    events = journal.feed(text.encode())
    hello = next((event for event in events if isinstance(event, Hello)), None)
    failure = next((event for event in events if isinstance(event, Error)), None)
    if hello is None or failure is not None:
        why = failure.message if failure else "it said no hello"
        raise DeviceSick(
            f"the agent's probe failed: {why}", device=connection.serial, remedy=f"run `{agent} probe` there"
        )
    missing = tuple(event.message for event in events if isinstance(event, Warning))
    return Probed(hello, tuple(event.facts for event in events if isinstance(event, Probe)), missing)


def read_properties(connection: DeviceConnection) -> dict[str, str]:
    return parse_properties(run(connection, "getprop"))


def read_boot_id(connection: DeviceConnection, *, deadline_s: float = 10.0) -> str:
    """Changes with every start of the device, and with nothing else."""
    return run(connection, "cat", BOOT_ID, deadline_s=deadline_s).strip()


def read_adbd(connection: DeviceConnection) -> str:
    """Process id of adbd, another one after each restart of it; empty where the device has none or does not tell."""
    return parse_adbd(connection.shell(ADBD))


def parse_adbd(answer: ShellResult) -> str:
    """The same, of the answer to `ADBD`."""
    return _text(answer).strip()


def phone_facts(
    connection: DeviceConnection, host: str, properties: dict[str, str], probed: Probed, tools_missing: tuple[str, ...]
) -> DeviceFacts:
    """Facts of a phone: its properties, its probe, its memory."""
    hello, apis = probed.hello, probed.apis
    own = {name.removeprefix("ro.pocketfarm."): value for name, value in properties.items()}
    driver_name = next((facts.device_name for facts in apis if facts.api != "cpu"), "")
    gpu = own.get("gpu") or driver_name
    return DeviceFacts(
        serial=connection.serial,
        host=host,
        kind="phone",
        source=source_of(properties.get(SOURCE, "")),
        address=connection.address,
        model=properties.get("ro.product.model", ""),
        manufacturer=properties.get("ro.product.manufacturer", ""),
        soc=own.get("soc") or properties.get("ro.soc.model") or properties.get("ro.board.platform", ""),
        gpu=gpu,
        gpu_vendor=gpu_vendor(own.get("gpu_vendor", ""), gpu, *(facts.vendor for facts in apis if facts.api != "cpu")),
        abi=properties.get("ro.product.cpu.abi", hello.abi),
        sdk=whole(properties.get("ro.build.version.sdk", "")),
        fingerprint=properties.get("ro.build.fingerprint", ""),
        memory_bytes=parse_memory_bytes(run(connection, "cat", "/proc/meminfo")),
        cores=hello.cores,
        boot_id=read_boot_id(connection),
        profile=own.get("profile", ""),
        apis=apis,
        apis_missing=probed.missing,
        tools_missing=tools_missing,
    )


def state_commands(connection: DeviceConnection) -> list[list[str]]:
    """Return the commands by which `read_state` asks a phone."""
    storage = ["df", "-k", connection.folder]
    return [storage, ["dumpsys", "battery"], ["dumpsys", "thermalservice"], ["sh", "-c", SCRIPT]]


def read_state(connection: DeviceConnection, kind: Literal["phone", "workstation", "unknown"]) -> DeviceState:
    """Return the state of the device now; what it does not tell is None."""
    if kind == "workstation":
        free = parse_free_bytes(_text(connection.shell(state_commands(connection)[0])))
        return DeviceState(health=Health.READY, free_storage_bytes=free, seen_at=time.time())
    *told, nodes = connection.shells(state_commands(connection), deadline_s=20.0)
    free, battery, thermal = (
        parse_free_bytes(_text(told[0])),
        parse_battery(_text(told[1])),
        parse_thermal(_text(told[2])),
    )
    if battery.updates_stopped:
        raise DeviceSick(
            "its battery figures are frozen by hand (UPDATES STOPPED)",
            device=connection.serial,
            remedy=f"adb -s {quote([connection.address])} shell dumpsys battery reset",
        )
    momentary, now = nodes.stdout.decode(errors="replace"), time.time()
    return DeviceState(
        health=Health.READY,
        battery_percent=battery.percent,
        battery_temp_c=battery.temp_c,
        charging=battery.charging,
        thermal_status=thermal.status,
        skin_temp_c=thermal.warmest_c(SKIN),
        free_storage_bytes=free,
        clock_off_s=clock_off(momentary, now),
        reading=parse_nodes(momentary, now).model_copy(
            update={"cpu_temp_c": thermal.warmest_c(CPU), "gpu_temp_c": thermal.warmest_c(GPU)}
        ),
        seen_at=time.time(),
    )


def _output(connection: DeviceConnection, *argv: str) -> str:
    """Return what a command printed; nothing where the phone does not have it."""
    return _text(connection.shell(argv))


def _text(result: ShellResult) -> str:
    return result.stdout.decode(errors="replace") if result.code == 0 else ""


def source_of(name: str) -> Source:
    """Return the source by the property `SOURCE`, which no phone of a maker has."""
    return Source(name) if name in (Source.VIRTUAL, Source.REPLAY) else Source.PHONE
