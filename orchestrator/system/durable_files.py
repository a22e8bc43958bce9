"""Write files that survive a crash, and make safe names for them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from .private_files import settle_all


def write_durably(path: Path, text: str) -> None:
    """Replace a file as a whole: after a crash there is the old content or the new one, on disk."""
    write_all_durably({path: text})


def write_all_durably(texts: Mapping[Path, str]) -> None:
    """The same of several; those of one folder share a flush of its names."""
    written = []
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(path.name + ".partial")
        partial.write_text(text)
        written.append((partial, path))
    settle_all(written)


def file_name(serial: str) -> str:
    """A serial as a file name: `127.0.0.1:5555` -> `127.0.0.1_5555`; no separator and no leading dot survives."""
    return "".join(c if c.isalnum() or c in "-_." else "_" for c in serial).lstrip(".") or "_"
