"""Loads the wiring file: what a person has wired to the devices of this host (docs/howto/conditions.md)."""

from __future__ import annotations

from pathlib import Path

from orchestrator.model.wiring import Wiring

from .validation import read_text, validate


def load_wiring(path: Path | None) -> Wiring:
    """Read a host's wiring file (`Settings.wiring_file`); empty where it has none.

    Raises SpecError with every problem: file, line, column, field, what is allowed.
    """
    return Wiring() if path is None else parse_wiring(read_text(path), str(path))


def parse_wiring(text: str, file: str = "wiring.yaml") -> Wiring:
    """Validate the text of a wiring file; `file` names it in errors. Raises SpecError."""
    return validate(text, Wiring, file, "a wiring file is a mapping: `devices: {SERIAL: {supply: ..., meter: ...}}`")
