"""The listening end of the control socket, and each phone as it knows it."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

from virtual_phones.hardware.clocks import policies
from virtual_phones.hardware.physics import clock_cap
from virtual_phones.phone import Phone

from .client import PhoneStatus, Reply, Request
from .injector import FaultInjector


class Controlled:
    """A phone as the control socket knows it."""

    def __init__(self, phone: Phone, faults: FaultInjector) -> None:
        self.phone = phone
        self.faults = faults

    @property
    def serial(self) -> str:
        return f"127.0.0.1:{self.phone.port}"

    def status(self) -> PhoneStatus:
        phone, body = self.phone, self.phone.body
        heat = clock_cap(phone.profile.thermal, body.skin_c)
        return PhoneStatus(
            serial=self.serial,
            name=self.phone.serial,
            port=self.phone.port,
            profile=self.phone.profile.name,
            root=self.phone.tree.root,
            faults=self.faults.active,
            agents=len(self.phone.processes),
            charge=body.charge,
            charging=body.charging,
            plugged=phone.supply.plugged,
            skin_c=body.skin_c,
            battery_c=body.battery_c,
            die_c=body.die_c,
            power_w=body.device_w,
            current_a=body.current_a,
            voltage_v=body.voltage_v,
            consumed_j=body.consumed_j,
            battery_loss_j=body.battery_loss_j,
            supplied_j=body.supplied_j,
            chemical_j=body.chemical_j,
            t_ns=phone.ticked_ns,
            load=body.load,
            background=phone.other_load,
            clock=phone.clock,
            running=phone.running_share,
            cpu_cap_khz=[phone.clocks.cpu(first, heat).high for first, _ in policies(phone.profile)],
            gpu_cap_hz=phone.clocks.gpu(heat).high,
            thermal_status=phone.thermal_status,
        )


def select(phones: Sequence[Controlled], name: str) -> list[Controlled]:
    """Phones by name, adb serial or `*`. Raises ValueError where there is none."""
    chosen = [entry for entry in phones if name in ("*", entry.serial, entry.phone.serial)]
    if not chosen:
        raise ValueError(f"no phone {name!r}; there are: {', '.join(entry.phone.serial for entry in phones)}")
    return chosen


async def serve_control(path: Path, phones: Sequence[Controlled]) -> asyncio.Server:
    """Listen on a unix socket that only this user may open."""

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while line := await reader.readline():
                reply = await answer(line, phones)
                writer.write(reply.model_dump_json().encode() + b"\n")
                await writer.drain()
        writer.close()

    path.unlink(missing_ok=True)
    before = os.umask(0o177)
    try:
        return await asyncio.start_unix_server(converse, path)
    finally:
        os.umask(before)


async def answer(line: bytes, phones: Sequence[Controlled]) -> Reply:
    """Do what a line to the socket asks, and return its answer."""
    try:
        request = Request.model_validate_json(line)
        chosen = select(phones, request.phone)
        if (request.do == "fault") != (request.fault is not None):
            raise ValueError("`fault` belongs to `do: fault`, and only there")
    except ValueError as error:
        return Reply(ok=False, error=str(error))
    for entry in chosen:
        if request.fault is not None:
            await entry.faults.apply(request.fault)
        elif request.do == "clear":
            await entry.faults.clear()
        elif request.do == "truth" or request.phone != "*":
            entry.phone.advance()
    return Reply(ok=True, phones=[entry.status() for entry in chosen])
