"""Read the labels of a set: the class number of each example."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from orchestrator.model.errors import ModelFileError

MOST = 1_000_000


def read_labels(path: Path) -> tuple[int, ...]:
    """One whole number a line, or the last word of a line (`image.jpg 65`). Raises ModelFileError, with the line."""
    return tuple(label for _, label in _lines(path))


def read_listing(path: Path) -> list[tuple[str, int]]:
    """`IMAGE CLASS` a line, as published sets have it; names may have spaces. Raises ModelFileError, with the line."""
    found = list(_lines(path))
    for number, (name, _) in enumerate(found, 1):
        if not name:
            raise ModelFileError(f"{path}: entry {number} names no image", remedy="write `image.jpg 65`, one a line")
    return found


def _lines(path: Path) -> Iterator[tuple[str, int]]:
    """Yield what stands before the number, and the number; empty lines do not count."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as e:
        raise ModelFileError(f"{path}: not readable as text: {e}", remedy="write one class number a line") from e
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        *before, word = line.rsplit(maxsplit=1)
        if not (word.isascii() and word.isdigit() and len(word) < 8 and int(word) <= MOST):
            raise ModelFileError(
                f"{path}:{number}: `{line.strip()[:80]}` does not end in a class number",
                remedy="write one class number a line",
            )
        yield "".join(before).strip(), int(word)
