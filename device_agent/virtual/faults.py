"""Faults that a virtual phone can be given, now or at a time set in a script."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from .cable import Cable
from .phone import Phone

Seconds = Annotated[float, Field(ge=0)]
Share = Annotated[float, Field(ge=0.05, le=1)]


class _Fault(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    seconds: Seconds | None = None
    """How long it lasts; None: until it is cleared."""


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


class Reboot(_Fault):
    """All processes end, the phone is away for `seconds` (default 5) and comes back with a new boot id."""

    fault: Literal["reboot"] = "reboot"


class StorageFull(_Fault):
    """No room is left on /data: pushes and shell commands get ENOSPC. Programs of the phone get no more room either,
    beyond what a file has reserved; as it is a limit of the process that stops them, the error is EFBIG."""

    fault: Literal["storage_full"] = "storage_full"


class KillAgent(_Fault):
    """The low-memory killer strikes: SIGKILL to everything that runs inside. `seconds` has no meaning."""

    fault: Literal["kill_agent"] = "kill_agent"


class ThermalTrip(_Fault):
    """The skin is at `temp_c` at once, and is held there for `seconds` if given; then it cools by physics."""

    fault: Literal["thermal_trip"] = "thermal_trip"
    temp_c: float | None = None
    """None: one degree above the profile's threshold of thermal status 3."""


class Garbage(_Fault):
    """What agents write, to standard output or their journal, arrives as garbage."""

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
    """Whether the hub cuts the data lines too, so that the phone is gone as with `unplug`."""


class Throttle(_Fault):
    """The phone throttles as if it were hot: clocks, power and the speed of what runs inside fall, and the thermal
    status rises to the one that leaves such a share."""

    fault: Literal["throttle"] = "throttle"
    share: Share = 0.5
    """Of the highest clocks that remains."""
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


class BatteryLevel(_Fault):
    """The battery is at `level` at once. `seconds` has no meaning."""

    fault: Literal["battery_level"] = "battery_level"
    level: Annotated[float, Field(ge=0, le=1)]


Fault = Annotated[
    Unplug | Hang | Slow | Offline | Unauthorized | Reboot | StorageFull | KillAgent | ThermalTrip | Garbage
    | FreezeGauge | Charging | Supply | Throttle | ClockCap | BackgroundLoad | BatteryLevel,
    Field(discriminator="fault"),
]  # fmt: skip
FAULT: TypeAdapter[Fault] = TypeAdapter(Fault)

_REBOOT_S = 5.0


class ScheduledFault(BaseModel):
    """A line of a fault script."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

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


class FaultInjector:
    """Applies faults to one phone and takes them back."""

    def __init__(self, phone: Phone, cable: Cable) -> None:
        self._phone = phone
        self._cable = cable
        self._active: dict[str, asyncio.Task[None] | None] = {}
        self._data_cut = False

    @property
    def active(self) -> list[str]:
        """Names of the faults that hold now."""
        return sorted(self._active)

    async def apply(self, fault: Fault) -> None:
        """Let a fault begin; it ends by itself after its `seconds`. One of the same name replaces the last one."""
        self._forget(fault.fault)
        if isinstance(fault, KillAgent):
            self._phone.signal_processes(signal.SIGKILL)
            return
        self._phone.advance()
        if isinstance(fault, BatteryLevel):
            self._phone.set_charge(fault.level)
            return
        await self._begin(fault)
        self._phone.show()
        seconds = _REBOOT_S if isinstance(fault, Reboot) and fault.seconds is None else fault.seconds
        lasting = isinstance(fault, Charging | ThermalTrip) or (isinstance(fault, Supply) and fault.on)
        if seconds is None and lasting:
            return  # a new state, not a fault to be taken back
        lift = None if seconds is None else asyncio.create_task(self._lift_after(fault.fault, seconds))
        self._active[fault.fault] = lift

    async def clear(self) -> None:
        """Take back every fault that holds."""
        for name in list(self._active):
            self._forget(name)
            await self._end(name)

    def _forget(self, name: str) -> None:
        if task := self._active.pop(name, None):
            task.cancel()

    async def _lift_after(self, name: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        self._active.pop(name, None)
        await self._end(name)

    async def _begin(self, fault: Fault) -> None:
        phone, cable = self._phone, self._cable
        match fault:
            case Unplug():
                await cable.unplug()
            case Hang():
                cable.flowing.clear()
            case Slow():
                cable.slow_factor = fault.factor
            case Offline():
                cable.silent = True
                await cable.drop()
            case Unauthorized():
                cable.authorized.clear()
                await cable.drop()
            case Reboot():
                phone.signal_processes(signal.SIGKILL)
                await cable.unplug()
            case StorageFull():
                phone.tree.full = True
                phone.limit_files()
            case ThermalTrip():
                phone.heat_to(fault.temp_c, hold=fault.seconds is not None)
            case Garbage():
                phone.garbled = True
            case FreezeGauge():
                phone.gauge.frozen = True
            case Charging():
                phone.set_supply(plugged=fault.on)
            case Supply():
                await self._switch_port(fault)
            case Throttle():
                phone.throttle(fault.share, visible=fault.visible)
            case ClockCap():
                phone.clocks.caps["clock_cap"] = fault.share
            case BackgroundLoad():
                phone.other_load = fault.share

    async def _end(self, name: str) -> None:
        phone, cable = self._phone, self._cable
        match name:
            case "unplug":
                await self._replug()
            case "hang":
                cable.flowing.set()
            case "slow":
                cable.slow_factor = 0.0
            case "offline":
                cable.silent = False
                await cable.drop()
            case "unauthorized":
                cable.authorized.set()
            case "reboot":
                phone.boot()
                await self._replug()
            case "storage_full":
                phone.tree.full = False
                phone.limit_files()
            case "thermal_trip":
                phone.held_skin_c = None
            case "garbage":
                phone.garbled = False
            case "freeze_gauge":
                phone.gauge.frozen = False
            case "charging":
                phone.set_supply(plugged=not phone.supply.plugged)
            case "supply":
                await self._switch_port(Supply(on=not phone.supply.port_on))
            case "throttle":
                phone.throttle(1.0)
            case "clock_cap":
                phone.clocks.caps.pop("clock_cap", None)
            case "background_load":
                phone.other_load = 0.0
        phone.show()

    async def _switch_port(self, fault: Supply) -> None:
        self._phone.set_supply(port_on=fault.on)
        was_cut, self._data_cut = self._data_cut, fault.with_data and not fault.on
        if self._data_cut:
            await self._cable.unplug()
        elif was_cut:
            await self._replug()

    async def _replug(self) -> None:
        """Plug in, unless another fault still keeps the phone away."""
        if not {"unplug", "reboot"} & set(self._active) and not self._data_cut:
            await self._cable.plug()
