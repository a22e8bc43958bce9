"""Faults that a virtual phone can be given, now or at a time set in a script."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

Seconds = Annotated[float, Field(ge=0)]
Share = Annotated[float, Field(ge=0.05, le=1)]


class _Fault(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    seconds: Seconds | None = None
    """The length of the fault; None: until it is cleared."""


class Unplug(_Fault):
    """The cable is pulled: connections drop, new ones are refused. What runs inside goes on."""

    fault: Literal["unplug"] = "unplug"


class Hang(_Fault):
    """The transport is mute: connected, but nothing passes in either direction."""

    fault: Literal["hang"] = "hang"


class Slow(_Fault):
    """Each message is late."""

    fault: Literal["slow"] = "slow"
    factor: Annotated[float, Field(gt=0)] = 10.0
    """Times slower than a USB 2 cable (1 ms and 40 MB/s)."""


class Offline(_Fault):
    """The phone no longer answers the handshake: adb shows `offline`."""

    fault: Literal["offline"] = "offline"


class Unauthorized(_Fault):
    """The host's key is not accepted: adb shows `unauthorized`."""

    fault: Literal["unauthorized"] = "unauthorized"


class SlowCommands(_Fault):
    """Each command of the shell takes so long to begin, as where a busy phone starts a virtual machine for each."""

    fault: Literal["slow_commands"] = "slow_commands"
    each_s: Annotated[float, Field(gt=0)] = 2.0


class LackTools(_Fault):
    """Commands that its release has are not there, or may not be run."""

    fault: Literal["lack_tools"] = "lack_tools"
    tools: tuple[str, ...]
    status: Literal[126, 127] = 127
    """The shell's exit status: 127 where there is none, 126 where it may not be run."""


class Reboot(_Fault):
    """All processes end, the phone is away for `seconds` (default 5) and comes back with a new boot id."""

    fault: Literal["reboot"] = "reboot"


class RestartAdbd(_Fault):
    """init starts adbd anew, as some phones do when their USB state changes: connections drop, and the phone is back
    after `seconds` (default 0.5) with the same boot id. What runs inside goes on, or dies with it."""

    fault: Literal["restart_adbd"] = "restart_adbd"
    kills: bool = False
    """True if init ends adbd's control group, in which all is that was started over adb, detached or not."""


class StorageFull(_Fault):
    """No room is left on /data: pushes and shell commands get ENOSPC. Programs of the phone get no more room either,
    beyond what a file has reserved; as it is a limit of the process that stops them, the error is EFBIG."""

    fault: Literal["storage_full"] = "storage_full"


class KillAgent(_Fault):
    """The low-memory killer strikes: SIGKILL to everything that runs inside. `seconds` has no meaning."""

    fault: Literal["kill_agent"] = "kill_agent"


class CoresOffline(_Fault):
    """The system switches cores off, as SoCs of 2013 to 2016 do with those that idle. What runs is not moved."""

    fault: Literal["cores_offline"] = "cores_offline"
    cores: Annotated[int, Field(ge=1)] = 1
    """The number of cores, from the last one down."""


class KernelLimit(_Fault):
    """The OpenCL driver refuses a kernel in larger work-groups, as where its compiler needs many registers for it. It
    holds for agents that start from then on; one of another kernel replaces it."""

    fault: Literal["kernel_limit"] = "kernel_limit"
    kernel: Annotated[str, Field(pattern=r"^\w+$")]
    """Name of the kernel in plans, e.g. conv_tiled."""
    work_group: Annotated[int, Field(ge=1)]
    """Most work-items of its work-group."""


class PowerButton(_Fault):
    """Somebody presses the power button: the screen goes off, or on. Once it is off and neither a supply nor adb's
    traffic keeps the phone up, it suspends: what runs inside stands still. `seconds` has no meaning."""

    fault: Literal["power_button"] = "power_button"


class ThermalTrip(_Fault):
    """The skin is at `temp_c` at once, and is held there for `seconds` if given; then it cools by physics."""

    fault: Literal["thermal_trip"] = "thermal_trip"
    temp_c: float | None = None
    """None: one degree above the profile's threshold of thermal status 3."""


class Garbage(_Fault):
    """A fault that turns what agents write, to standard output or their journal, to garbage."""

    fault: Literal["garbage"] = "garbage"


class FreezeGauge(_Fault):
    """The fuel gauge repeats its last reading."""

    fault: Literal["freeze_gauge"] = "freeze_gauge"


class Charging(_Fault):
    """USB power is switched."""

    fault: Literal["charging"] = "charging"
    on: bool = True


class Supply(_Fault):
    """The hub's port gives power to the cable, or not. Once cut, a charger changes nothing until it is restored."""

    fault: Literal["supply"] = "supply"
    on: bool = False
    with_data: bool = False
    """True if the hub cuts the data lines too, so that the phone is gone as with `unplug`."""


class Throttle(_Fault):
    """The phone throttles as if it were hot: clocks, power and the speed of what runs inside fall, and the thermal
    status rises to the one that leaves such a share."""

    fault: Literal["throttle"] = "throttle"
    share: Share = 0.5
    """The share of the highest clocks that remains."""
    visible: bool = True
    """False: the firmware does it; the limits in the nodes and the thermal status stay, only the clocks tell."""


class ClockCap(_Fault):
    """Something lowers the highest clocks that the system allows; what runs inside gets slower, and draws less."""

    fault: Literal["clock_cap"] = "clock_cap"
    share: Share = 0.6


class BackgroundLoad(_Fault):
    """Something else keeps a share of the cores busy: it draws power, and takes time from what runs inside."""

    fault: Literal["background_load"] = "background_load"
    share: Annotated[float, Field(gt=0, le=0.95)] = 0.3


class SlowBuild(_Fault):
    """One build of the agent is slower on this phone than others: its processes run for `share` of the time. Nothing
    else tells, as where a change of the program meets a driver that does not like it. It stands still for a part of
    every 2 ms: of much shorter inferences most are as fast as ever, and their mean alone shows it."""

    fault: Literal["slow_build"] = "slow_build"
    build: Annotated[str, Field(pattern=r"^[0-9a-f]{8,64}$")]
    """The beginning of its SHA-256."""
    share: Share = 1 / 1.08
    """1 / 1.08: everything takes 8 % longer."""


class BatteryLevel(_Fault):
    """The battery is at `level` at once. `seconds` has no meaning."""

    fault: Literal["battery_level"] = "battery_level"
    level: Annotated[float, Field(ge=0, le=1)]


Fault = Annotated[
    Unplug | Hang | Slow | Offline | Unauthorized | Reboot | RestartAdbd | StorageFull | KillAgent | KernelLimit
    | PowerButton | ThermalTrip | Garbage | FreezeGauge | Charging | Supply | Throttle | ClockCap | BackgroundLoad
    | SlowBuild | BatteryLevel | CoresOffline | SlowCommands | LackTools,
    Field(discriminator="fault"),
]  # fmt: skip
FAULT: TypeAdapter[Fault] = TypeAdapter(Fault)


class ScheduledFault(BaseModel):
    """A line of a fault script."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    at_s: Seconds
    """Seconds after all phones are up."""
    phone: str = "*"
    """The phone's own serial, e.g. virtual-galaxy_s7-0; `*`: all."""
    do: Fault


def load_script(path: Path) -> list[ScheduledFault]:
    """Read a fault script (YAML, a list of ScheduledFault). Raises ValueError naming the file."""
    try:
        entries = TypeAdapter(list[ScheduledFault]).validate_python(yaml.safe_load(path.read_text()))
    except (OSError, yaml.YAMLError, ValueError) as error:
        raise ValueError(f"fault script {path}: {error}") from error
    return sorted(entries, key=lambda entry: entry.at_s)
