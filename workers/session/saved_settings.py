"""Save the settings of a phone before they are changed, until they are put back: on the phone, then on the host's disk.

The phone's journal is the truth: whichever host reaches the phone next puts back what it names. The host's copy tells
what is left while the phone is away, and stands in where the phone has no journal at all.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from kernels.errors import checkpoint
from orchestrator.model.errors import ConditionNotMet, DeviceSick, FarmError, StableError
from orchestrator.model.experiment import Conditions
from orchestrator.model.record import ConditionProof
from orchestrator.system.durable_files import file_name, write_durably
from workers.connection.base import DeviceConnection
from workers.connection.quote import quote
from workers.devices.install import run

from .conditions import SETTINGS, awake
from .conditions.awake import SWITCHING

FOLDER = "restore"
ON_PHONE = "restore.json"
Changes = dict[str, dict[str, str]]
"""Name of a setting -> its values before, in the order of the changes."""


class SettingsLeft(DeviceSick):
    """The phone refuses to be put back: it gets no work until it is, or until a person says that it may."""

    cause = "settings_left"


class JournalUnreadable(SettingsLeft):
    """The journal of a crash on a device cannot be read: a person must look at the device."""

    cause = "journal_unreadable"


class SavedSettings:
    """The journal of one device; the caller holds the device's lock."""

    def __init__(self, state: Path, connection: DeviceConnection) -> None:
        self._path = state / FOLDER / f"{file_name(connection.serial)}.json"
        self._connection = connection
        self._phone_path = f"{connection.folder}/{ON_PHONE}" if connection.address else ""
        """Empty on this host itself, whose disk is the only one."""

    @property
    def asks(self) -> list[list[str]]:
        """The commands that ask the phone for what is to be put back."""
        return [["cat", self._phone_path]] if self._phone_path else []

    def prepare(self, conditions: Conditions) -> tuple[ConditionProof, ...]:
        """Save, journal, switch and read back every setting that the conditions want."""
        proofs = []
        for name, setting in SETTINGS.items():
            if wanted := setting.wanted(conditions):
                checkpoint()
                before = setting.save(self._connection)
                with self._written({**self._read(), name: before}, SWITCHING if name == awake.NAME else ()):
                    held = setting.prepare(self._connection)
                was = ", ".join(f"{key}={value}" for key, value in before.items() if value)
                proofs.append(ConditionProof(name=name, wanted=wanted, before=was, held=held.value, proven=held.proven))
        return tuple(proofs)

    def restore(self) -> tuple[str, ...]:
        """Put back whatever the journal names, the last change first, also after a crash; returns the names.

        What is not put back stays in the journal. Raises SettingsLeft where the phone refuses something, after all
        others; and at once what is no refusal: TransportLost, and whatever the thread's checkpoint raises.
        """
        saved, refused = self.pending(), dict[str, Exception]()
        names = [name for name in reversed(saved) if name in SETTINGS]
        for name in names:
            try:
                SETTINGS[name].restore(self._connection, saved[name])
            except (StableError, DeviceSick, ConditionNotMet, KeyError, ValueError) as e:
                refused[name] = e
                continue
            del saved[name]
            self._write(saved)
        if refused:
            raise self._left(refused)
        self._path.unlink(missing_ok=True)
        return tuple(names)

    def pending(self) -> Changes:
        """Return what is to be put back, in the order of the changes; from now on the host's copy says the same.

        Raises JournalUnreadable, TransportLost.
        """
        on_phone, here = self._on_phone(), self._read()
        if on_phone is None or on_phone == here:
            return here
        if on_phone and on_phone == self._released():  # a person has said that it may stay so
            on_phone = {}
        if on_phone or here:
            self._write(on_phone)
        return on_phone

    def _left(self, refused: Mapping[str, Exception]) -> SettingsLeft:
        serial = self._connection.serial
        whys = [f"{name}: {e.args[0] if isinstance(e, FarmError) else repr(e)}" for name, e in refused.items()]
        return SettingsLeft(
            f"an earlier session left settings changed that cannot be put back: {'; '.join(whys)}",
            device=serial,
            remedy=f"mend that, then `farm restore {serial}`; or put it right by hand, then `farm release {serial}`",
        )

    @property
    def changed(self) -> tuple[str, ...]:
        """Settings that are not put back yet, as far as this host knows."""
        return tuple(self._read())

    def _write(self, changes: Changes) -> None:
        """Returns when phone and disk have it. What is put back leaves the phone first: what is only there is put back
        by whoever comes."""
        if changes:
            with self._written(changes):
                return
        self._tell_phone(self._text(changes))
        self._path.unlink(missing_ok=True)

    @contextmanager
    def _written(self, changes: Changes, then: Sequence[Sequence[str]] = ()) -> Iterator[None]:
        """The phone has it inside (a host that is its own phone: the disk), and the disk afterwards, which is flushed
        meanwhile. Where the phone does not take it, the disk says what it said before. `then`: in the same trip, once
        the phone has it; where that trip is lost, the disk goes on to say that it may be so."""
        text, before = self._text(changes), self._path.read_text() if self._path.exists() else None
        with ThreadPoolExecutor(1, "journal") as disk:
            flushed = disk.submit(write_durably, self._path, text)
            may_be_switched = False
            try:
                if then and self._phone_path:
                    may_be_switched = True
                    asked = [self._telling(text), *then]
                    may_be_switched = bool(self._connection.shells(asked, deadline_s=60.0, guard=0))
                if not may_be_switched:
                    self._tell_phone(text)
                if not self._phone_path or flushed.done():  # what cannot be written is known at once
                    flushed.result()
            except BaseException:
                flushed.exception()
                if not may_be_switched:
                    self._path.unlink(missing_ok=True) if before is None else write_durably(self._path, before)
                raise
            yield
            flushed.result()

    def _text(self, changes: Changes) -> str:
        return json.dumps({"serial": self._connection.serial, "changed": changes})

    def _tell_phone(self, text: str) -> None:
        if self._phone_path:
            run(self._connection, *self._telling(text), deadline_s=20.0)

    def _telling(self, text: str) -> list[str]:
        new, parent = f"{self._phone_path}.new", self._connection.folder
        put = f"mkdir -p {parent} && {quote(['printf', '%s', text])} > {new} && mv -f {new} {self._phone_path}"
        return ["sh", "-c", put]

    def _on_phone(self) -> Changes | None:
        """None where the phone has no journal, or none that can be read while this host has its own."""
        if not self._phone_path:
            return None
        found = self._connection.shell(*self.asks)
        if found.code != 0:
            return None
        try:
            return parse_changes(found.stdout)[1]
        except ValueError as e:
            if self._path.exists():
                return None
            raise JournalUnreadable(
                f"{self._phone_path} on the phone is unreadable: {e}",
                device=self._connection.serial,
                remedy="check its brightness, airplane mode and clocks by hand, then delete the file",
            ) from e

    def _released(self) -> Changes | None:
        try:
            return parse_changes(self._path.with_suffix(".released").read_bytes())[1]
        except (OSError, ValueError):
            return None

    def _read(self) -> Changes:
        try:
            return read_changes(self._path)[1]
        except JournalUnreadable as e:
            e.device = self._connection.serial
            raise


def changed_phones(state: Path) -> tuple[str, ...]:
    """Serials of the phones on which something is not put back yet; of an unreadable journal its file's name."""
    return tuple(changed_settings(state))


def changed_settings(state: Path) -> dict[str, tuple[str, ...]]:
    """The same serials -> names of the settings; of an unreadable journal `unknown`."""
    found: dict[str, tuple[str, ...]] = {}
    for path in sorted((state / FOLDER).glob("*.json")):
        try:
            serial, changes = read_changes(path)
        except JournalUnreadable:  # whoever restores it says what is wrong with it
            serial, changes = path.stem, {"unknown": {}}
        if serial:  # else it has just been put back
            found[serial] = tuple(changes)
    return found


def forget_changes(state: Path, serial: str) -> bool:
    """Set a phone's journal aside; whether there was one. The caller holds the phone's lock."""
    path = state / FOLDER / f"{file_name(serial)}.json"
    if not path.exists():
        return False
    path.replace(path.with_suffix(".released"))
    return True


def parse_changes(text: bytes) -> tuple[str, Changes]:
    """Serial and changes of a journal's text. Raises ValueError."""
    try:
        found = json.loads(text)
        changed = {name: dict(saved) for name, saved in found["changed"].items()}
        if not all(isinstance(value, str) for saved in changed.values() for value in saved.values()):
            raise ValueError("a value that is no text")
        return str(found["serial"]), changed
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as e:
        raise ValueError(str(e) or type(e).__name__) from e


def read_changes(path: Path) -> tuple[str, Changes]:
    """Serial and changes of a journal file. Raises JournalUnreadable."""
    try:
        return parse_changes(path.read_bytes())
    except FileNotFoundError:
        return "", {}
    except (ValueError, OSError) as e:
        raise JournalUnreadable(
            f"{path} is unreadable: {e}",
            remedy="check the phone's brightness, airplane mode and clocks by hand, then delete the file",
        ) from e
