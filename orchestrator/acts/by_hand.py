"""Acts on a phone by hand, at its host: a picture of its screen, a command in its shell, its screen mirrored."""

from __future__ import annotations

import base64
import time
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.coordination.inventory import Inventory
from orchestrator.ledger import Ledger
from orchestrator.model.device import DeviceFacts
from orchestrator.model.errors import DeviceBusy, DeviceSick, SpecError, TransportLost, Unsupported
from orchestrator.model.people import Role
from orchestrator.model.rights import Actor, Place, Right

from .act import Acting, Done, Given, act, on_pages
from .devices import check_known

HAS_IT = Right(Role.OPERATE, own=Role.SUBMIT, of="farm")
"""The right to operate the farm; of who has the phone, a lesser one."""
MOST_OUTPUT = 1 << 20
_PNG = b"\x89PNG\r\n\x1a\n"


def _of_holder(ledger: Ledger, _: Actor, given: Given) -> list[Place]:
    """Return the people who have the phone now."""
    return [place for each in ledger.standing.holds() if each.serial == given["serial"] for place in each.places]


@dataclass(frozen=True)
class Screenshot(Done):
    serial: str
    png: str
    """The picture, in base64."""
    bytes: int

    @property
    def lines(self) -> list[str]:
        return [f"a picture of {self.serial}'s screen, {self.bytes} bytes"]

    @property
    def shows(self) -> dict[str, str]:
        return {"picture": self.png}


@on_pages
@act(HAS_IT, at=_of_holder)
def screenshot(acting: Acting, serial: str) -> Screenshot:
    """Take a picture of a phone's screen, while nothing is measured there.

    Raises UnknownName, Unsupported where it is no phone or its host takes no commands, DeviceBusy while a job has it,
    DeviceSick where it gives no picture, ServiceDown where its host does not answer.
    """
    from orchestrator.coordination.tasks.by_hand import MOST_BYTES

    host = _phone(acting, serial).host
    code, picture, told, why = _ask(acting, host, serial, ["screencap", "-p"], MOST_BYTES)
    if code or why or not picture.startswith(_PNG):
        said = why or told.decode(errors="replace").strip()[:200] or f"{len(picture)} bytes that are no PNG"
        raise DeviceSick(f"no picture of its screen: {said}", device=serial, remedy="wake the phone, and try again")
    return Screenshot(serial, base64.b64encode(picture).decode(), len(picture))


@dataclass(frozen=True)
class Ran(Done):
    serial: str
    command: str
    code: int | None
    """Exit status; None: it was ended, or nobody knows."""
    output: str
    """Output, then errors, of `MOST_OUTPUT` bytes together at most."""
    why: str = ""
    """The reason why there is no status."""

    @property
    def lines(self) -> list[str]:
        ended = f"and ended with {self.code}" if self.code is not None else f"and has no exit status: {self.why}"
        return [f"`{self.command}` ran on {self.serial}, {ended}"]

    @property
    def shows(self) -> dict[str, str]:
        return {"text": self.output}


@on_pages
@act(HAS_IT, at=_of_holder)
def shell(acting: Acting, serial: str, command: Sequence[str]) -> Ran:
    """Run a command in the shell of a phone that somebody holds, for 20 s at most, while nothing is measured there.

    `command`: words, which are joined as `adb shell` does. What it changes on the phone stays changed. Beyond 20 s or
    1 MiB it is ended, and says so. Raises UnknownName, Unsupported where nobody holds it, it is no phone or its host
    takes no commands, DeviceBusy while a job has it, ServiceDown where its host does not take it.
    """
    text = " ".join(command)
    if not text.strip() or len(text) > 1000 or not text.isprintable():
        raise SpecError("a command is a line of at most 1000 characters", remedy="farm devices shell SERIAL -- CMD")
    host = _phone(acting, serial).host
    _check_held(acting, serial)
    try:
        code, out, err, why = _ask(acting, host, serial, ["sh", "-c", text], MOST_OUTPUT)
    except (TransportLost, DeviceSick) as e:  # it may have run: the audit has it
        code, out, err, why = None, b"", b"", str(e.args[0])
    return Ran(serial, text, code, (out + err).decode(errors="replace"), why)


@dataclass(frozen=True)
class Mirrored(Done):
    serial: str
    host: str
    address: str
    """The name that the host's adb server has for the phone."""

    @property
    def lines(self) -> list[str]:
        return [f"{self.serial} is mirrored on a screen of host {self.host}, by whoever sits there"]


@act(HAS_IT, at=_of_holder, routed=False)
def mirror(acting: Acting, serial: str) -> Mirrored:
    """Let scrcpy show and steer a phone that somebody holds, on the host that has it.

    Raises UnknownName, Unsupported where nobody holds it, it is no phone or another host has it, DeviceBusy while a job
    has it.
    """
    phone, here = _phone(acting, serial), acting.site.settings.host
    _check_held(acting, serial)
    if phone.host != here:
        told = f"it is on host {phone.host}, and this is {here}"
        raise Unsupported(told, device=serial, remedy=f"run `farm devices mirror {serial}` there")
    return Mirrored(serial, here, phone.address)


def _check_held(acting: Acting, serial: str) -> None:
    if not any(each.serial == serial for each in acting.ledger.standing.holds()):
        remedy = f"take it first: `farm hold {serial} --for 1h`"
        raise Unsupported(
            "nobody holds the phone, so a job may begin on it at any moment", device=serial, remedy=remedy
        )


def _ask(
    acting: Acting, host: str, serial: str, argv: Sequence[str], most_bytes: int
) -> tuple[int | None, bytes, bytes, str]:
    """Return status, output, errors, and why there is no status. Raises FarmError."""
    from orchestrator.coordination.tasks import by_hand  # Celery, which few acts need

    question = by_hand.Question(serial=serial, argv=tuple(argv), deadline_s=by_hand.DEADLINE_S, most_bytes=most_bytes)
    said = by_hand.ask(acting.site.redis(), acting.site.settings, host, question)
    return said.code, *said.printed, said.why


def _phone(acting: Acting, serial: str) -> DeviceFacts:
    """Return what the host that has a phone says of it. Raises UnknownName, Unsupported, DeviceBusy, ServiceDown."""
    from orchestrator.coordination.tasks.by_hand import PROTOCOL

    check_known(acting, [serial])
    inventory = Inventory(acting.site.redis())
    here = next((each.facts for each in inventory.devices() if each.serial == serial), None)
    if here is None or here.kind != "phone":
        what = "no host announces it now" if here is None else f"it is a {here.kind} of host {here.host}"
        raise Unsupported(what, device=serial, remedy="name a phone that `farm devices` shows")
    known = next((each.protocol for each in inventory.hosts() if each.host == here.host), 0)
    if known < PROTOCOL:
        what = f"the worker of host {here.host} takes no commands (protocol {known}, it takes {PROTOCOL})"
        raise Unsupported(
            what, device=serial, remedy=f"update pocketfarm there; until then use `adb -s {serial}` there"
        )
    for row in acting.ledger.running():
        if row.serial == serial:
            since = time.strftime("%H:%M:%S", time.localtime(row.started_at))
            remedy = f"wait for its end, or run `farm hold {serial} --now`"
            raise DeviceBusy(f"{row.label} has been under way there since {since}", device=serial, remedy=remedy)
    return here
