"""Admit a phone to the farm: install and verify the agent, probe the phone, read its state."""

from __future__ import annotations

import platform
from pathlib import Path

from orchestrator.model.device import DeviceState
from orchestrator.model.errors import Unsupported
from orchestrator.system.config import Settings
from workers.connection.base import DeviceConnection

from .dumpsys import whole
from .fleet import Member
from .install import file_sha256, install_agent
from .probe import phone_facts, probe, read_properties, read_state
from .tools import missing_tools

FLOOR_SDK = 24
"""Android 7, for which the agent is built (device_agent/build.py): the first with shell v2."""


def agent_folder(settings: Settings) -> Path:
    """Return where the built agents are: `<abi>/pocketfarm-agent`."""
    return settings.agent_dir or Path(__file__).resolve().parents[2] / "device_agent" / "build"


def host_abi() -> str:
    """Android's name of this machine's ABI."""
    machine = platform.machine()
    return {"aarch64": "arm64-v8a", "arm64": "arm64-v8a", "AMD64": "x86_64"}.get(machine, machine)


def enrol_phone(connection: DeviceConnection, settings: Settings) -> tuple[Member, DeviceState]:
    """Everything that must be known before the phone may work. Raises FarmError; the phone is left as it was."""
    properties = read_properties(connection)
    sdk = whole(properties.get("ro.build.version.sdk", ""))
    if 0 < sdk < FLOOR_SDK:
        raise Unsupported(
            f"its Android has API level {sdk}, the farm needs {FLOOR_SDK}",
            device=connection.serial,
            remedy="use a phone with Android 7 or newer",
        )
    abi = properties.get("ro.product.cpu.abi", "")
    if not abi:
        raise Unsupported(
            "it names no ro.product.cpu.abi", device=connection.serial, remedy="is this an Android device?"
        )
    tools = missing_tools(connection)
    agents = agent_folder(settings)
    agent = install_agent(connection, abi, agents)
    facts = phone_facts(connection, settings.host, properties, probe(connection, agent), tools)
    sha256 = file_sha256(agents / abi / "pocketfarm-agent")
    return Member(connection, facts, agent, sha256), read_state(connection, "phone")
