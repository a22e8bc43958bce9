"""Labels of a set: the number of each example's right class."""

from __future__ import annotations

from pathlib import Path

from .errors import ModelFileError

LEAST, MOST = 0, 1_000_000


def read_labels(path: Path) -> tuple[int, ...]:
    """One whole number a line, or the last word of a line (`image.jpg 65`). Raises ModelFileError, with the line."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as e:
        raise ModelFileError(f"{path}: no readable text: {e}", remedy="write one class number a line") from e
    return tuple(_label(path, number, line) for number, line in enumerate(lines, 1) if line.strip())


def _label(path: Path, number: int, line: str) -> int:
    word = line.split()[-1]
    if not (word.isascii() and word.isdigit() and LEAST <= int(word) <= MOST):
        raise ModelFileError(
            f"{path}:{number}: `{line.strip()[:80]}` does not end in a class number",
            remedy="write one class number a line",
        )
    return int(word)
