"""The act of saying something of devices: labels, a note, an owner."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.acts.access.projects import NAME, check_project
from orchestrator.ledger import Ledger
from orchestrator.model.device import DeviceNote, project_of
from orchestrator.model.errors import SpecError
from orchestrator.model.people import Role
from orchestrator.model.quantity import counted
from orchestrator.model.rights import Actor, Place, Right

from .act import Acting, Done, Given, act, on_pages, some
from .devices import check_known

_LABEL = re.compile(rf"((?:{NAME}/)?[a-z][a-z0-9_.-]{{0,39}})=([A-Za-z0-9_.:/+-]{{0,80}})")
MOST_LABELS, LONGEST_NOTE, LONGEST_OWNER = 20, 500, 100


@dataclass(frozen=True)
class Described(Done):
    devices: dict[str, DeviceNote]
    before: dict[str, DeviceNote]

    @property
    def on(self) -> str:
        return some([*self.devices])

    @property
    def did(self) -> bool:
        return self.devices != self.before

    @property
    def ok(self) -> bool:
        return True

    @property
    def lines(self) -> list[str]:
        if not self.did:
            return ["nothing is said that was not said before"]
        return [f"{serial}: {_words(one)}" for serial, one in self.devices.items() if one != self.before[serial]]

    @property
    def data(self) -> dict[str, Any]:
        return {"devices": {serial: one.model_dump(mode="json") for serial, one in self.devices.items()}}


def _of_labels(_: Ledger, actor: Actor, given: Given) -> list[Place]:
    """Return the projects whose labels are given; all else is said for the farm (an empty one)."""
    found = {project_of(each.strip()) for each in given["labels"] if each} or {""}
    found |= {""} if (given["note"], given["owner"]) != (None, None) else set()
    return [Place(each, actor.who) for each in sorted(found)]


@on_pages
@act(Right(Role.OPERATE), at=_of_labels)
def describe(
    acting: Acting,
    serials: Sequence[str],
    labels: Sequence[str] = (),
    note: str | None = None,
    owner: str | None = None,
) -> Described:
    """Say something of devices, of all or none: labels, by which experiments choose them, a note, an owner.

    `labels`: `KEY=VALUE` in the place of the key's value, `KEY=` takes it away. `PROJECT/KEY=VALUE` is a project's:
    others neither see it nor choose by it. None leaves the note or the owner as it is, an empty text takes it away.
    Raises SpecError where no device is named or a text is not as it may be, UnknownName for a device or a project that
    the farm does not know.
    """
    if not (wanted := sorted(set(serials))):
        raise SpecError("no device is named", remedy="name one or more; `farm devices` lists them")
    given, standing = dict(_label(each) for each in labels if each), acting.ledger.standing
    check_known(acting, wanted)
    for project in {project_of(each) for each in given} - {""}:
        check_project(acting.ledger, project)
    for text, most in ((note, LONGEST_NOTE), (owner, LONGEST_OWNER)):
        if text and (len(text) > most or not text.isprintable()):
            raise SpecError(f"{text[:40]!r} is no line of {counted(most, 'character')} at most", remedy="shorten it")
    known = standing.noted()
    before = {serial: known.get(serial, DeviceNote()) for serial in wanted}
    after = {
        serial: DeviceNote(
            labels=_merged(one.labels, given),
            note=one.note if note is None else note.strip(),
            owner=one.owner if owner is None else owner.strip(),
        )
        for serial, one in before.items()
    }
    standing.note(after)
    seen = acting.actor.grants.visible
    return Described(*({serial: one.seen_by(seen) for serial, one in each.items()} for each in (after, before)))


def _label(text: str) -> tuple[str, str]:
    """Return key and value. Raises SpecError."""
    if (found := _LABEL.fullmatch(text.strip())) is None:
        what = "a label is KEY=VALUE or PROJECT/KEY=VALUE: a word in small letters, then letters, digits and `_.:/+-`"
        raise SpecError(f"{text[:100]!r} is no label; {what}", remedy="write e.g. `rack=3`; `rack=` takes it away")
    return found[1], found[2]


def _merged(labels: Iterable[str], given: dict[str, str]) -> tuple[str, ...]:
    """Return labels with others in their places. Raises SpecError where these are too many."""
    merged = {key: value for key, _, value in (each.partition("=") for each in labels)} | given
    found = tuple(f"{key}={value}" for key, value in sorted(merged.items()) if value)
    if max(Counter(map(project_of, found)).values(), default=0) > MOST_LABELS:
        raise SpecError(f"a device has at most {MOST_LABELS} labels of each", remedy="take some away with `KEY=`")
    return found


def _words(one: DeviceNote) -> str:
    parts = (", ".join(one.labels), one.owner and f"of {one.owner}", one.note)
    return "; ".join(filter(None, parts)) or "nothing is said of it any more"
