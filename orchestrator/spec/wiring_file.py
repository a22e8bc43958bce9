"""Loads the wiring file: what a person has wired to the devices of this host (docs/howto/conditions.md)."""

from __future__ import annotations

from pathlib import Path

from orchestrator.config import Settings
from orchestrator.model.wiring import Wiring

from .validation import read_text, validate


def load_wiring(settings: Settings) -> Wiring:
    """The wiring file of this host: `settings.wiring`, else `wiring.yaml` in the state folder; empty where none is.

    Raises SpecError with every problem: file, line, column, field, what is allowed.
    """
    path = wiring_path(settings)
    return Wiring() if path is None else parse_wiring(read_text(path), str(path))


def wiring_path(settings: Settings) -> Path | None:
    """Return where the wiring file is; one that was named must be there."""
    if settings.wiring is not None:
        return settings.wiring
    own = settings.state / "wiring.yaml"
    return own if own.is_file() else None


def parse_wiring(text: str, file: str = "wiring.yaml") -> Wiring:
    """Validate the text of a wiring file; `file` names it in errors. Raises SpecError."""
    return validate(text, Wiring, file, "a wiring file is a mapping: `devices: {SERIAL: {supply: ..., meter: ...}}`")
