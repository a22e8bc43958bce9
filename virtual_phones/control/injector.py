"""Lets faults begin on one phone, and takes them back."""

from __future__ import annotations

import asyncio
import signal
import time

from virtual_phones import faults
from virtual_phones.adb.cable import Cable
from virtual_phones.phone import Phone

_AWAY_S = {"reboot": 5.0, "restart_adbd": 0.5}
"""The time that a phone is away by a fault that does not say for how long."""


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

    async def apply(self, fault: faults.Fault) -> None:
        """Let a fault begin; it ends by itself after its `seconds`. One of the same name replaces the last one."""
        self._forget(fault.fault)
        if isinstance(fault, faults.KillAgent):
            self._phone.signal_processes(signal.SIGKILL)
            return
        self._phone.advance()
        if isinstance(fault, faults.PowerButton):
            self._phone.wakefulness.press_power(time.monotonic())
            return
        if isinstance(fault, faults.BatteryLevel):
            self._phone.set_charge(fault.level)
            return
        await self._begin(fault)
        self._phone.show()
        seconds = _AWAY_S.get(fault.fault) if fault.seconds is None else fault.seconds
        lasting = isinstance(fault, faults.Charging | faults.ThermalTrip) or (
            isinstance(fault, faults.Supply) and fault.on
        )
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

    async def _begin(self, fault: faults.Fault) -> None:
        phone, cable = self._phone, self._cable
        match fault:
            case faults.Unplug():
                await cable.unplug()
            case faults.Hang():
                cable.flowing.clear()
            case faults.Slow():
                cable.slow_factor = fault.factor
            case faults.SlowCommands():
                phone.command_s = fault.each_s
            case faults.LackTools():
                phone.lacking = dict.fromkeys(phone.profile.lacks, 127) | dict.fromkeys(fault.tools, fault.status)
            case faults.Offline():
                cable.silent = True
                await cable.drop()
            case faults.Unauthorized():
                cable.authorized.clear()
                await cable.drop()
            case faults.Reboot():
                phone.signal_processes(signal.SIGKILL)
                await cable.unplug()
            case faults.RestartAdbd():
                if fault.kills:
                    phone.signal_processes(signal.SIGKILL)
                await cable.unplug()
            case faults.StorageFull():
                phone.tree.full = True
                phone.limit_files()
            case faults.ThermalTrip():
                phone.heat_to(fault.temp_c, hold=fault.seconds is not None)
            case faults.Garbage():
                phone.garbled = True
            case faults.CoresOffline():
                phone.cores_online = max(1, phone.profile.cores - fault.cores)
            case faults.KernelLimit():
                phone.kernel_limits = f"{fault.kernel}={fault.work_group}"
            case faults.FreezeGauge():
                phone.gauge.frozen = True
            case faults.Charging():
                phone.set_supply(plugged=fault.on)
            case faults.Supply():
                await self._switch_port(fault)
            case faults.Throttle():
                phone.throttle(fault.share, visible=fault.visible)
            case faults.ClockCap():
                phone.clocks.caps["clock_cap"] = fault.share
            case faults.BackgroundLoad():
                phone.other_load = fault.share
            case faults.SlowBuild():
                phone.slow_down((fault.build, fault.share))

    async def _end(self, name: str) -> None:
        phone, cable = self._phone, self._cable
        match name:
            case "unplug":
                await self._replug()
            case "hang":
                cable.flowing.set()
            case "slow":
                cable.slow_factor = 0.0
            case "slow_commands":
                phone.command_s = 0.0
            case "lack_tools":
                phone.lacking = dict.fromkeys(phone.profile.lacks, 127)
            case "offline":
                cable.silent = False
                await cable.drop()
            case "unauthorized":
                cable.authorized.set()
            case "reboot":
                phone.boot()
                await self._replug()
            case "restart_adbd":
                phone.adbd_pid += 1
                await self._replug()
            case "storage_full":
                phone.tree.full = False
                phone.limit_files()
            case "thermal_trip":
                phone.held_skin_c = None
            case "garbage":
                phone.garbled = False
            case "cores_offline":
                phone.cores_online = phone.profile.cores
            case "kernel_limit":
                phone.kernel_limits = ""
            case "freeze_gauge":
                phone.gauge.frozen = False
            case "charging":
                phone.set_supply(plugged=not phone.supply.plugged)
            case "supply":
                await self._switch_port(faults.Supply(on=not phone.supply.port_on))
            case "throttle":
                phone.throttle(1.0)
            case "clock_cap":
                phone.clocks.caps.pop("clock_cap", None)
            case "background_load":
                phone.other_load = 0.0
            case "slow_build":
                phone.slow_down(None)
        phone.show()

    async def _switch_port(self, fault: faults.Supply) -> None:
        self._phone.set_supply(port_on=fault.on)
        was_cut, self._data_cut = self._data_cut, fault.with_data and not fault.on
        if self._data_cut:
            await self._cable.unplug()
        elif was_cut:
            await self._replug()

    async def _replug(self) -> None:
        """Plug in, unless another fault still keeps the phone away."""
        if not {"unplug", "reboot", "restart_adbd"} & set(self._active) and not self._data_cut:
            await self._cable.plug()
