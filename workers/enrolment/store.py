"""Device profiles on this host's disk: one file for each enrolment of a serial with a system build."""

from __future__ import annotations

import hashlib
import logging
import re
from pathlib import Path

from pydantic import ValidationError

from orchestrator.model.enrolment import Enrolment
from orchestrator.system.durable_files import file_name, write_durably

log = logging.getLogger(__name__)
KEPT = 5
"""Versions of one serial and build that are kept."""
_VERSION = re.compile(r"\.v(\d+)\.json$")


def load(state: Path, serial: str, fingerprint: str) -> Enrolment | None:
    """The newest profile of this serial with this build; None where there is none that can be read."""
    for path in reversed(_versions(state, serial, fingerprint)):
        if found := _read(path):
            return found
    return None


def newest(state: Path, serial: str) -> Enrolment | None:
    """The newest profile of a serial with whatever build; None where it was never enrolled here."""
    found = [_read(path) for path in _folder(state, serial).glob("*.json")]
    return max((each for each in found if each), key=lambda each: each.enrolled_at, default=None)


def serials(state: Path) -> list[str]:
    """Devices with a profile that can be read."""
    found = [_read(path) for path in (state / "enrolments").glob("*/*.json")]
    return sorted({each.serial for each in found if each})


def save(state: Path, enrolment: Enrolment) -> Enrolment:
    """Keep it under the next version number, durably; returns it with that."""
    paths = _versions(state, enrolment.serial, enrolment.fingerprint)
    version = _number(paths[-1]) + 1 if paths else 1
    kept = enrolment.model_copy(update={"version": version})
    path = _folder(state, kept.serial) / f"{_key(kept.fingerprint)}.v{version}.json"
    write_durably(path, kept.model_dump_json(indent=1))
    for old in paths[: max(0, len(paths) + 1 - KEPT)]:
        old.unlink(missing_ok=True)
    return kept


def _folder(state: Path, serial: str) -> Path:
    return state / "enrolments" / file_name(serial)


def _key(fingerprint: str) -> str:
    return hashlib.sha256(fingerprint.encode()).hexdigest()[:16]


def _versions(state: Path, serial: str, fingerprint: str) -> list[Path]:
    """Oldest first."""
    return sorted(_folder(state, serial).glob(f"{_key(fingerprint)}.v*.json"), key=_number)


def _number(path: Path) -> int:
    match = _VERSION.search(path.name)
    return int(match[1]) if match else 0


def _read(path: Path) -> Enrolment | None:
    try:
        return Enrolment.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as e:  # an older farm's, or damaged: the phone is enrolled anew
        log.warning("%s cannot be read and is skipped: %s", path, str(e).splitlines()[0])
        return None
