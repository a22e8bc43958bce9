"""Macros and functions of a dialect, kept in files of its language."""

from __future__ import annotations

from pathlib import Path


def text_of(file: Path) -> str:
    """The file without its lines of comment, which are for readers and not for a device's compiler."""
    return "".join(line for line in file.read_text().splitlines(keepends=True) if not line.startswith("// "))
