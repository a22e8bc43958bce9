"""The control socket of the virtual phones: one JSON object a line, one answer a line.

    {"do": "list"}                                                      -> {"ok": true, "phones": [...]}
    {"do": "fault", "phone": "virtual-galaxy_s7-0",
     "fault": {"fault": "unplug", "seconds": 5}}                        -> {"ok": true, "phones": [...]}
    {"do": "truth", "phone": "virtual-galaxy_s7-0"}                     -> {"ok": true, "phones": [...]}, up to now
    {"do": "clear", "phone": "*"}                                       -> {"ok": true, "phones": [...]}
    anything else                                                       -> {"ok": false, "error": "..."}

`python -m virtual_phones.control SOCKET PHONE fault unplug --seconds 5` speaks it from a terminal. A phone is
named by its own serial, its adb serial (127.0.0.1:PORT), or `*` for all.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from .clocks import policies
from .fault_injector import FaultInjector
from .faults import FAULT, Fault
from .phone import Phone
from .physics import clock_cap


class PhoneStatus(BaseModel):
    """The state of one virtual phone."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    serial: str
    """The serial that adb shows, 127.0.0.1:PORT."""
    name: str
    """The phone's own serial, `ro.serialno`."""
    port: int
    profile: str
    root: Path
    """Folder on the host that holds the phone's file system."""
    faults: list[str] = []
    agents: int = 0
    """Processes that run inside."""
    charge: float
    """State of charge, 0 to 1."""
    charging: bool
    """True if USB power reaches the phone."""
    plugged: bool = False
    """True if a charger is in the phone, though its port may be cut."""
    skin_c: float
    battery_c: float = 0.0
    die_c: float = 0.0
    power_w: float
    """The power that the phone draws, from battery and supply together."""
    current_a: float = 0.0
    """Positive while the battery discharges."""
    voltage_v: float = 0.0
    """The voltage at the battery's terminals."""
    consumed_j: float = 0.0
    """The energy that the phone drew since it was switched on here, without the battery's own loss: the integral of
    `power_w`, and while it is not charging, of current times voltage."""
    battery_loss_j: float = 0.0
    """Lost in the battery's inner resistance."""
    supplied_j: float = 0.0
    """The energy that came through USB."""
    chemical_j: float = 0.0
    """Taken out of the battery's chemistry; negative: put in."""
    t_ns: int = 0
    """CLOCK_BOOTTIME up to which the energies are counted."""
    load: float = 0.0
    """Share of the cores that is busy, with `background`."""
    background: float = 0.0
    """Share of the cores that something else than the phone's processes keeps busy."""
    clock: float = 1.0
    """Share of the highest clock that heat and limits leave."""
    running: float = 1.0
    """Share of the time that the phone's processes may run."""
    cpu_cap_khz: list[int] = []
    """Highest clock of each cluster now."""
    gpu_cap_hz: int = 0
    thermal_status: int = 0


class Request(BaseModel):
    """One line to the control socket."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    do: Literal["list", "truth", "fault", "clear"]
    phone: str = "*"
    fault: Fault | None = None


class Reply(BaseModel):
    """One line back: the phones that the request named, after it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    ok: bool
    error: str = ""
    phones: list[PhoneStatus] = Field(default_factory=list)


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


class ControlClient:
    """Speaks to the control socket; one connection per call. Raises OSError where nobody listens, ValueError where the
    request was refused."""

    def __init__(self, path: Path, *, timeout_s: float = 10.0) -> None:
        self.path = path
        self._timeout_s = timeout_s

    def phones(self, phone: str = "*") -> list[PhoneStatus]:
        """Return how the phones are now."""
        return self._call(Request(do="list", phone=phone))

    def truth(self, phone: str) -> PhoneStatus:
        """Return how one phone is at this moment: its energies are integrated up to the `t_ns` in the answer."""
        return self._call(Request(do="truth", phone=phone))[0]

    def fault(self, phone: str, fault: Fault) -> list[PhoneStatus]:
        """Give a phone a fault, e.g. `Unplug(seconds=5)`."""
        return self._call(Request(do="fault", phone=phone, fault=fault))

    def clear(self, phone: str = "*") -> list[PhoneStatus]:
        """Take back all faults."""
        return self._call(Request(do="clear", phone=phone))

    def _call(self, request: Request) -> list[PhoneStatus]:
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(self._timeout_s)
            sock.connect(str(self.path))
            sock.sendall(request.model_dump_json().encode() + b"\n")
            with sock.makefile("rb") as replies:
                reply = Reply.model_validate_json(replies.readline())
        if not reply.ok:
            raise ValueError(reply.error)
        return reply.phones


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m virtual_phones.control", description=__doc__.split("\n")[0])
    parser.add_argument("socket", type=Path)
    parser.add_argument("phone", help="the phone's serial, its adb serial, or *")
    verbs = parser.add_subparsers(dest="do", required=True)
    verbs.add_parser("list", help="how the phones are now")
    verbs.add_parser("truth", help="how they are now, energies integrated up to this moment")
    verbs.add_parser("clear", help="take back all faults")
    fault = verbs.add_parser("fault", help="give the phone a fault")
    fault.add_argument("name", help="unplug, hang, slow, supply, throttle, clock_cap, background_load, ...")
    fault.add_argument("--seconds", type=float)
    fault.add_argument("--factor", type=float)
    fault.add_argument("--temp-c", type=float)
    fault.add_argument("--level", type=float)
    fault.add_argument("--share", type=float)
    fault.add_argument("--cores", type=int)
    fault.add_argument("--kernel")
    fault.add_argument("--build")
    fault.add_argument("--work-group", type=int)
    fault.add_argument("--each-s", type=float)
    fault.add_argument("--tools", type=lambda text: text.split(","), metavar="NAME,...")
    fault.add_argument("--status", type=int)
    for switch in ("--on", "--visible", "--with-data", "--kills"):
        fault.add_argument(switch, type=lambda text: {"on": True, "off": False}[text], metavar="on|off")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line. Prints the phones as JSON; 1 with a message where the request was refused."""
    options = _parser().parse_args(arguments)
    request: dict[str, Any] = {"do": options.do, "phone": options.phone}
    try:
        if options.do == "fault":
            asked = {
                name: value for name, value in vars(options).items() if name not in ("socket", "phone", "do", "name")
            }
            given = {name: value for name, value in asked.items() if value is not None}
            request["fault"] = FAULT.validate_python({"fault": options.name, **given})
        phones = ControlClient(options.socket)._call(Request.model_validate(request))
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(json.dumps([phone.model_dump(mode="json") for phone in phones]))
    return 0


__all__ = ["ControlClient", "Controlled", "PhoneStatus", "Request", "answer", "main", "select", "serve_control"]

if __name__ == "__main__":
    sys.exit(main())
