"""The lines of the control socket, and a client of it."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from virtual_phones.faults import Fault


class PhoneStatus(BaseModel):
    """The state of one virtual phone."""

    model_config = ConfigDict(extra="forbid", frozen=True)

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


class ControlClient:
    """Speaks to the control socket; one connection per call. Raises OSError where nobody listens, ValueError where the
    request was refused."""

    def __init__(self, path: Path, *, timeout_s: float = 10.0) -> None:
        self.path = path
        self._timeout_s = timeout_s

    def phones(self, phone: str = "*") -> list[PhoneStatus]:
        """Return how the phones are now."""
        return self.call(Request(do="list", phone=phone))

    def truth(self, phone: str) -> PhoneStatus:
        """Return how one phone is at this moment: its energies are integrated up to the `t_ns` in the answer."""
        return self.call(Request(do="truth", phone=phone))[0]

    def fault(self, phone: str, fault: Fault) -> list[PhoneStatus]:
        """Give a phone a fault, e.g. `Unplug(seconds=5)`."""
        return self.call(Request(do="fault", phone=phone, fault=fault))

    def clear(self, phone: str = "*") -> list[PhoneStatus]:
        """Take back all faults."""
        return self.call(Request(do="clear", phone=phone))

    def call(self, request: Request) -> list[PhoneStatus]:
        """Send one request, and return the phones that it named."""
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(self._timeout_s)
            sock.connect(str(self.path))
            sock.sendall(request.model_dump_json().encode() + b"\n")
            with sock.makefile("rb") as replies:
                reply = Reply.model_validate_json(replies.readline())
        if not reply.ok:
            raise ValueError(reply.error)
        return reply.phones
