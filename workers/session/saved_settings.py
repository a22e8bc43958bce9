"""Save the settings of a phone on the host's disk before they are changed, until they are put back."""

from __future__ import annotations

import json
from pathlib import Path

from kernels.checkpoint import checkpoint
from orchestrator.errors import TransientError
from orchestrator.model.experiment import Conditions
from orchestrator.model.record import ConditionProof
from workers.connection.base import DeviceConnection
from workers.durable_files import file_name, write_durably

from .conditions import SETTINGS

FOLDER = "restore"
Changes = dict[str, dict[str, str]]
"""Name of a setting -> its values before, in the order of the changes."""


class JournalUnreadable(TransientError):
    """What a crash left on a device is not known any more: a person must look at it."""

    cause = "journal_unreadable"


class SavedSettings:
    """The journal of one device; the caller holds the device's lock."""

    def __init__(self, state: Path, connection: DeviceConnection) -> None:
        self._path = state / FOLDER / f"{file_name(connection.serial)}.json"
        self._connection = connection

    def prepare(self, conditions: Conditions) -> tuple[ConditionProof, ...]:
        """Save, journal, switch and read back every setting that the conditions want."""
        proofs = []
        for name, setting in SETTINGS.items():
            if wanted := setting.wanted(conditions):
                checkpoint()
                before = setting.save(self._connection)
                self._write({**self._read(), name: before})
                held = setting.prepare(self._connection)
                was = ", ".join(f"{key}={value}" for key, value in before.items() if value)
                proofs.append(ConditionProof(name=name, wanted=wanted, before=was, held=held.value, proven=held.proven))
        return tuple(proofs)

    def restore(self) -> tuple[str, ...]:
        """Put back whatever the journal names, the last change first, also after a crash; returns the names.

        Raises JournalUnreadable, and the transient errors of the device; what is not put back yet then stays in the
        journal.
        """
        saved = self._read()
        names = [name for name in reversed(saved) if name in SETTINGS]
        for name in names:
            SETTINGS[name].restore(self._connection, saved.pop(name))
            self._write(saved)
        self._path.unlink(missing_ok=True)
        return tuple(names)

    @property
    def changed(self) -> tuple[str, ...]:
        """Settings that are not put back yet."""
        return tuple(self._read())

    def _write(self, changes: Changes) -> None:
        write_durably(self._path, json.dumps({"serial": self._connection.serial, "changed": changes}))

    def _read(self) -> Changes:
        try:
            return read_changes(self._path)[1]
        except JournalUnreadable as e:
            e.device = self._connection.serial
            raise


def changed_phones(state: Path) -> tuple[str, ...]:
    """Serials of the phones on which something is not put back yet; of an unreadable journal its file's name."""
    serials = []
    for path in sorted((state / FOLDER).glob("*.json")):
        try:
            serials.append(read_changes(path)[0])
        except JournalUnreadable:  # whoever restores it says what is wrong with it
            serials.append(path.stem)
    return tuple(serials)


def read_changes(path: Path) -> tuple[str, Changes]:
    """Serial and changes of a journal. Raises JournalUnreadable."""
    try:
        found = json.loads(path.read_text())
        return str(found["serial"]), {name: dict(saved) for name, saved in found["changed"].items()}
    except FileNotFoundError:
        return "", {}
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise JournalUnreadable(
            f"{path} is unreadable: {e}",
            remedy="check the phone's brightness, airplane mode and clocks by hand, then delete the file",
        ) from e
