"""Loads the lab file: what a person has wired to the devices of this host (docs/howto/conditions.md)."""

from __future__ import annotations

from pathlib import Path

from orchestrator.config import Settings
from orchestrator.model.lab import Lab

from .validation import read_text, validate


def load_lab(settings: Settings) -> Lab:
    """The lab file of this host: `settings.lab`, else `lab.yaml` in the state folder; empty where there is none.

    Raises SpecError with every problem: file, line, column, field, what is allowed.
    """
    path = lab_path(settings)
    return Lab() if path is None else parse_lab(read_text(path), str(path))


def lab_path(settings: Settings) -> Path | None:
    """Where the lab file is; one that was named must be there."""
    if settings.lab is not None:
        return settings.lab
    own = settings.state / "lab.yaml"
    return own if own.is_file() else None


def parse_lab(text: str, file: str = "lab") -> Lab:
    """Validate the text of a lab file; `file` names it in errors. Raises SpecError."""
    return validate(text, Lab, file, "a lab file is a mapping: `devices: {SERIAL: {supply: ..., meter: ...}}`")
