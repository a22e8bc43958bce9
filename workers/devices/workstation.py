"""This host's own compute devices as devices of the farm: `local-cpu`, and one per real GPU."""

from __future__ import annotations

import os
import platform
import re
import time
from collections.abc import Collection, Iterable
from pathlib import Path

from orchestrator.model.device import Api, ApiFacts, DeviceFacts, DeviceState, Source
from orchestrator.system.config import Settings
from workers.connection.local import LocalConnection

from .admit import agent_folder, host_abi
from .device_lock import device_lock
from .dumpsys import parse_memory_bytes
from .fleet import Member
from .install import file_sha256, install_agent
from .probe import gpu_vendor, probe, read_boot_id, read_state

CPU_SERIAL = "local-cpu"
"""Everything that runs on the host's cores: threads, OpenCL by PoCL, Vulkan by lavapipe."""
LOCK_WAIT_S = 30.0


def local_connection(settings: Settings, serial: str) -> LocalConnection:
    """This host under one of its serials, with a folder of its own."""
    return LocalConnection(serial, settings.state / "devices" / serial)


def enrol_workstation(settings: Settings) -> list[tuple[Member, DeviceState]]:
    """Install the agent, probe, and sort what it finds into devices. Raises SetupError without an agent."""
    host = local_connection(settings, CPU_SERIAL)
    with device_lock(settings.state, CPU_SERIAL, wait_s=LOCK_WAIT_S):
        agent = install_agent(host, host_abi(), agent_folder(settings))
        hello, apis, _ = probe(host, agent)
    return [_member(settings, serial, own, hello.abi) for serial, own in sort_devices(apis).items()]


def sort_devices(apis: Iterable[ApiFacts]) -> dict[str, tuple[ApiFacts, ...]]:
    """Serial -> its APIs: the software ones are `local-cpu`, a GPU's OpenCL and Vulkan are one device.

    GPUs of one model cannot be told apart by name: they are one device, and the first of them is used.
    """
    found = list(apis)
    cpus = {facts.device_name for facts in found if facts.api == Api.CPU}
    gpus = [facts for facts in found if not _is_cpu(facts, cpus)]
    devices: dict[str, dict[Api, ApiFacts]] = {}
    for facts in found:
        serial = _gpu_serial(facts, gpus) if facts in gpus else CPU_SERIAL
        devices.setdefault(serial, {}).setdefault(facts.api, facts)
    return {serial: tuple(own.values()) for serial, own in devices.items()}


def _is_cpu(facts: ApiFacts, cpus: Collection[str]) -> bool:
    """`cpus`: names of the processor, which vendors' OpenCL for processors uses too."""
    return facts.device_name in cpus or _vendor(facts) == "cpu"


def _gpu_serial(facts: ApiFacts, gpus: Iterable[ApiFacts]) -> str:
    """Name a GPU by itself; drivers differ in a vendor's only one, and Vulkan's name is readable (`gfx1030`)."""
    same = [other for other in gpus if _vendor(other) == _vendor(facts)]
    alone = _vendor(facts) and len({other.api for other in same}) == len(same)
    named = next((other for other in same if other.api == Api.VULKAN), facts) if alone else facts
    name = re.sub(r"\([^)]*\)|\[[^]]*\]", " ", named.device_name).lower()  # `(R)`, `(TM)`, `(KBL GT2)`, `[0x5917]`
    return "local-" + (re.sub(r"[^a-z0-9]+", "-", name).strip("-")[:40].rstrip("-") or "gpu")


def _vendor(facts: ApiFacts) -> str:
    return gpu_vendor(facts.device_name, facts.vendor, facts.driver)


def _member(settings: Settings, serial: str, apis: tuple[ApiFacts, ...], abi: str) -> tuple[Member, DeviceState]:
    connection = local_connection(settings, own_serial(settings, serial))
    agents = agent_folder(settings)
    agent = install_agent(connection, host_abi(), agents)
    on_cpu = serial == CPU_SERIAL
    slot = (f"POCKETFARM_SLOT={settings.engine_slot.absolute()}",) if on_cpu and settings.engine_slot else ()
    gpu = next((facts for facts in apis if facts.api != Api.CPU), None)
    facts = DeviceFacts(
        serial=connection.serial,
        host=settings.host,
        kind="workstation",
        source=Source.WORKSTATION,
        model=_cpu_name() if on_cpu or gpu is None else gpu.device_name,
        soc=_cpu_name(),
        gpu=gpu.device_name if gpu else "",
        gpu_vendor="cpu" if on_cpu or gpu is None else _vendor(gpu),
        abi=abi,
        fingerprint=platform.platform(),
        memory_bytes=parse_memory_bytes(Path("/proc/meminfo").read_text()),
        cores=len(os.sched_getaffinity(0)),
        boot_id=read_boot_id(connection),
        apis=apis,
    )
    state = read_state(connection, "workstation").model_copy(update={"seen_at": time.time()})
    sha256 = file_sha256(agents / host_abi() / "pocketfarm-agent")
    return Member(connection, facts, agent, sha256, environment=slot), state


def own_serial(settings: Settings, serial: str) -> str:
    """Return the farm's name for a device of this machine: a host of another machine's farm names itself in it."""
    return f"{settings.host}-{serial.removeprefix('local-')}" if settings.files_url else serial


def _cpu_name() -> str:
    match = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return match[1].strip() if match else platform.machine()
