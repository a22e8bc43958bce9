"""Tokens of a text: the file of their numbers."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import numpy.typing as npt

from kernels.errors import InputError

from .input_file import ONLY, read_arrays

Tokens = npt.NDArray[np.int64]

MOST_TOKENS = 1 << 20
_BETWEEN = str.maketrans("[],", "   ")
_NUMBER = re.compile("-?[0-9]{1,18}")
_AXES = ("(tokens)", "(texts, tokens)")
_LARGEST = 1 << 62


def read_tokens(path: Path) -> Tokens:
    """The tokens of a text: an `.npy` of whole numbers, or their numbers in a text file, between blanks or commas, in
    brackets or not. Raises InputError."""
    return np.concatenate(_rows(path))


def read_texts(path: Path) -> Tokens:
    """The tokens of a file's texts, (texts, tokens): each row of an `.npy`, each line of a text file, or each
    list in brackets, is one, and all are as long; a single column of numbers is one text. Raises InputError."""
    rows = _rows(path)
    if odd := next((number for number, row in enumerate(rows) if len(row) != len(rows[0])), 0):
        raise InputError(
            f"{path}: row {odd + 1} has {len(rows[odd])} tokens, and the first has {len(rows[0])}; each row is a "
            "text, and those that are taken side by side are of one length: put a single text on one line"
        )
    return np.stack(rows)


def _rows(path: Path) -> list[Tokens]:
    """The numbers of each row; lines without any are none."""
    found = _stored(path) if _is_npy(path) else _written(path)
    count, kinds = sum(map(len, found)), {row.dtype for row in found}
    if any(kind.kind not in "iu" for kind in kinds) or not 0 < count <= MOST_TOKENS:
        of = f" of type {kinds.pop()}" if kinds else ""
        raise InputError(f"{path}: {count} numbers{of}; give 1 to {MOST_TOKENS} whole numbers")
    if large := next((row.max() for row in found if row.max(initial=0) > _LARGEST), 0):
        raise InputError(f"{path}: token {large}: no vocabulary has as many; give the numbers of its tokens")
    return [row.astype(np.int64) for row in found]


def _stored(path: Path) -> list[Tokens]:
    arrays = read_arrays(path)
    array = arrays.get(ONLY)
    if array is None or array.ndim > len(_AXES):
        given = f"arrays {', '.join(map(repr, arrays))}" if array is None else f"shape {array.shape}"
        raise InputError(f"{path}: {given}; give one array of {' or '.join(_AXES)}, written with numpy.save")
    return list(array if array.ndim == len(_AXES) and len(array) else array.reshape(1, -1))


def _written(path: Path) -> list[Tokens]:
    try:
        text = path.read_text("utf-8-sig")[: 24 * MOST_TOKENS]
    except OSError as e:
        raise InputError(f"{path}: cannot be read: {e.strerror or e}; give the path of a file of tokens") from e
    except UnicodeDecodeError as e:
        raise InputError(f"{path}: no text in UTF-8 at byte {e.start}; give numbers of tokens, as text or .npy") from e
    listed = "[" in text
    text = text.replace("\n", " ").replace("]", "\n") if listed else text
    lines = [line for each in text.splitlines() if (line := each.translate(_BETWEEN).split())]
    if odd := next((word for line in lines for word in line if not _NUMBER.fullmatch(word)), ""):
        raise InputError(f"{path}: no numbers of tokens: {odd[:40]!r} is none; give whole numbers between blanks")
    if not listed and all(len(line) == 1 for line in lines):  # a column
        lines = [[word for line in lines for word in line]]
    return [np.array([int(word) for word in line], np.int64) for line in lines]


def _is_npy(path: Path) -> bool:
    """Tell by its name or, of a kept file, by its content."""
    if path.suffix == ".npy" or not path.is_file():
        return path.suffix == ".npy"
    with path.open("rb") as file:
        return file.read(len(np.lib.format.MAGIC_PREFIX)) == np.lib.format.MAGIC_PREFIX


def check_tokens(tokens: Tokens, words: int, source: Path | str) -> None:
    """Raise InputError for a token that a vocabulary of so many words lacks."""
    if (odd := tokens[(tokens < 0) | (tokens >= words)]).size:
        raise InputError(f"{source}: token {odd[0]}; the model's vocabulary has {words}")
