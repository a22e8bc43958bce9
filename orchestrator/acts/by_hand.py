"""Acts on a phone by hand: a picture of its screen, a command in its shell."""

from __future__ import annotations

import base64
import time
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.ledger import Ledger
from orchestrator.model.errors import DeviceBusy, DeviceSick, SpecError, Unsupported
from orchestrator.model.people import Role
from orchestrator.model.rights import Actor, Place, Right

from .act import Acting, Done, Given, Phones, act
from .devices import check_known

HAS_IT = Right(Role.OPERATE, own=Role.SUBMIT, of="farm")
"""The right to operate the farm; of who has the phone, a lesser one."""
DEADLINE_S = 20.0
MOST_OUTPUT, MOST_PICTURE = 1 << 20, 32 << 20
_PNG = b"\x89PNG\r\n\x1a\n"


def _of_holder(ledger: Ledger, _: Actor, given: Given) -> list[Place]:
    """Return the people who have the phone now."""
    holds = ledger.standing.holds()
    return [Place("", each.who) for each in holds if each.serial == given["serial"] and not each.project]


@dataclass(frozen=True)
class Screenshot(Done):
    serial: str
    png: str
    """The picture, in base64."""
    bytes: int

    @property
    def lines(self) -> list[str]:
        return [f"a picture of {self.serial}'s screen, {self.bytes} bytes"]


@act(HAS_IT, at=_of_holder)
def screenshot(acting: Acting, serial: str) -> Screenshot:
    """Take a picture of a phone's screen, while nothing is measured there.

    Raises UnknownName, Unsupported where it is no phone of the farm's own machine, DeviceBusy while a job has it,
    DeviceSick where it gives no picture.
    """
    code, picture, told = _phone(acting, serial).run(serial, ["screencap", "-p"], DEADLINE_S)
    if code or not picture.startswith(_PNG) or len(picture) > MOST_PICTURE:
        said = told.decode(errors="replace").strip()[:200] or f"{len(picture)} bytes that are no PNG"
        raise DeviceSick(f"no picture of its screen: {said}", device=serial, remedy="wake the phone, and try again")
    return Screenshot(serial, base64.b64encode(picture).decode(), len(picture))


@dataclass(frozen=True)
class Ran(Done):
    serial: str
    command: str
    code: int
    output: str
    """Output, then errors, cut at `MOST_OUTPUT` bytes."""

    @property
    def lines(self) -> list[str]:
        return [f"`{self.command}` ran on {self.serial}, and ended with {self.code}"]


@act(HAS_IT, at=_of_holder)
def shell(acting: Acting, serial: str, command: Sequence[str]) -> Ran:
    """Run a command in the shell of a phone that somebody holds, for 20 s at most, while nothing is measured there.

    `command`: words, which are joined as `adb shell` does. What it changes on the phone stays changed. Raises
    UnknownName, Unsupported where nobody holds it or it is no phone of the farm's own machine, DeviceBusy while a job
    has it, DeviceSlow where the command goes on for longer.
    """
    text = " ".join(command)
    if not text.strip() or len(text) > 1000 or not text.isprintable():
        raise SpecError("a command is a line of at most 1000 characters", remedy="farm devices shell SERIAL -- CMD")
    phones = _phone(acting, serial)
    if not any(each.serial == serial for each in acting.ledger.standing.holds()):
        remedy = f"take it first: `farm hold {serial} --for 1h`"
        raise Unsupported(
            "nobody holds the phone, so a job may begin on it at any moment", device=serial, remedy=remedy
        )
    code, out, err = phones.run(serial, ["sh", "-c", text], DEADLINE_S)
    return Ran(serial, text, code, (out + err)[:MOST_OUTPUT].decode(errors="replace"))


def _phone(acting: Acting, serial: str) -> Phones:
    """Return the phones of this machine, where it is one of them. Raises UnknownName, Unsupported, DeviceBusy."""
    check_known(acting, [serial])
    inventory, own = acting.inventory(), acting.site.settings.host
    found = {each.serial: each.facts for each in inventory.devices()} if inventory is not None else {}
    here, phones = found.get(serial), acting.site.phones
    if here is None or phones is None or (here.kind, here.host) != ("phone", own):
        what = "no host announces it now" if here is None else f"it is a {here.kind} of host {here.host}"
        remedy = f"only phones of the farm's own machine ({own}) are reached so; at its host use `adb -s {serial}`"
        raise Unsupported(what, device=serial, remedy=remedy)
    for row in acting.ledger.running():
        if row.serial == serial:
            since = time.strftime("%H:%M:%S", time.localtime(row.started_at))
            remedy = f"wait for its end, or run `farm hold {serial} --now`"
            raise DeviceBusy(f"{row.label} has been under way there since {since}", device=serial, remedy=remedy)
    return phones
