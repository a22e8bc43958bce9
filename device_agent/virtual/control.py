"""The control socket of the virtual phones: one JSON object a line, one answer a line.

    {"do": "list"}                                                      -> {"ok": true, "phones": [...]}
    {"do": "fault", "phone": "virtual-galaxy_s7-0",
     "fault": {"fault": "unplug", "seconds": 5}}                        -> {"ok": true, "phones": [...]}
    {"do": "clear", "phone": "*"}                                       -> {"ok": true, "phones": [...]}
    anything else                                                       -> {"ok": false, "error": "..."}

`python -m device_agent.virtual.control SOCKET PHONE fault unplug --seconds 5` speaks it from a terminal. A phone is
named by its own serial, its adb serial (127.0.0.1:PORT), or `*` for all.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from .faults import FAULT, Fault, FaultInjector
from .phone import Phone


class PhoneStatus(BaseModel):
    """How one virtual phone is now."""

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
    charging: bool
    skin_c: float
    power_w: float


class Request(BaseModel):
    """One line to the control socket."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    do: Literal["list", "fault", "clear"]
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
        body = self.phone.body
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
            skin_c=body.skin_c,
            power_w=body.device_w,
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
                reply = await _answer(line, phones)
                writer.write(reply.model_dump_json().encode() + b"\n")
                await writer.drain()
        writer.close()

    path.unlink(missing_ok=True)
    server = await asyncio.start_unix_server(converse, path)
    path.chmod(0o600)
    return server


async def _answer(line: bytes, phones: Sequence[Controlled]) -> Reply:
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
    return Reply(ok=True, phones=[entry.status() for entry in chosen])


class ControlClient:
    """Speaks to the control socket; one connection per call. Raises OSError where nobody listens, ValueError where the
    request was refused."""

    def __init__(self, path: Path, *, timeout_s: float = 10.0) -> None:
        self.path = path
        self._timeout_s = timeout_s

    def phones(self, phone: str = "*") -> list[PhoneStatus]:
        """How the phones are now."""
        return self._call(Request(do="list", phone=phone))

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
    parser = argparse.ArgumentParser(prog="python -m device_agent.virtual.control", description=__doc__.split("\n")[0])
    parser.add_argument("socket", type=Path)
    parser.add_argument("phone", help="the phone's serial, its adb serial, or *")
    verbs = parser.add_subparsers(dest="do", required=True)
    verbs.add_parser("list", help="how the phones are now")
    verbs.add_parser("clear", help="take back all faults")
    fault = verbs.add_parser("fault", help="give the phone a fault")
    fault.add_argument("name", help="unplug, hang, slow, offline, unauthorized, reboot, storage_full, kill_agent, ...")
    fault.add_argument("--seconds", type=float)
    fault.add_argument("--factor", type=float)
    fault.add_argument("--temp-c", type=float)
    fault.add_argument("--level", type=float)
    fault.add_argument("--on", type=lambda text: {"on": True, "off": False}[text], metavar="on|off")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line. Prints the phones as JSON; 1 with a message where the request was refused."""
    options = _parser().parse_args(arguments)
    request: dict[str, Any] = {"do": options.do, "phone": options.phone}
    try:
        if options.do == "fault":
            names = ("seconds", "factor", "temp_c", "level", "on")
            given = {name: value for name in names if (value := getattr(options, name)) is not None}
            request["fault"] = FAULT.validate_python({"fault": options.name, **given})
        phones = ControlClient(options.socket)._call(Request.model_validate(request))
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(json.dumps([phone.model_dump(mode="json") for phone in phones]))
    return 0


__all__ = ["ControlClient", "Controlled", "PhoneStatus", "main", "select", "serve_control"]

if __name__ == "__main__":
    sys.exit(main())
