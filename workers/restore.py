"""What was changed on a phone, on the host's disk before it is changed, until it is put back."""

from __future__ import annotations

import json
import os
from pathlib import Path

from orchestrator.errors import TransientError
from orchestrator.model.experiment import Conditions

from .conditions import SETTINGS
from .device.base import DeviceConnection
from .lock import file_name


class SavedSettings:
    """The journal of one device; the caller holds the device's lock."""

    def __init__(self, state: Path, connection: DeviceConnection) -> None:
        self._path = state / "restore" / f"{file_name(connection.serial)}.json"
        self._connection = connection

    def prepare(self, conditions: Conditions) -> tuple[str, ...]:
        """Save, journal, switch and prove every setting that the conditions want; returns their names."""
        wanted = [name for name, setting in SETTINGS.items() if setting.wanted(conditions)]
        for name in wanted:
            write_durably(self._path, json.dumps({**self._read(), name: SETTINGS[name].save(self._connection)}))
            SETTINGS[name].prepare(self._connection)
        return tuple(wanted)

    def restore(self) -> None:
        """Put back whatever the journal names, also after a crash. Raises TransientError; the journal then stays."""
        saved = self._read()
        for name in reversed([name for name in SETTINGS if name in saved]):
            SETTINGS[name].restore(self._connection, saved.pop(name))
            write_durably(self._path, json.dumps(saved))
        self._path.unlink(missing_ok=True)

    def _read(self) -> dict[str, dict[str, str]]:
        try:
            return dict(json.loads(self._path.read_text()))
        except FileNotFoundError:
            return {}
        except ValueError as e:
            raise TransientError(
                f"{self._path} is unreadable: {e}",
                device=self._connection.serial,
                remedy="check the phone's brightness and airplane mode by hand, then delete the file",
            ) from e


def write_durably(path: Path, text: str) -> None:
    """Replace a file as a whole: after a crash there is the old content or the new one, on disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    with partial.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
    descriptor = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
