"""Tokens of a text: the file of their numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from kernels.errors import InputError

from .input_file import ONLY, read_arrays

Tokens = npt.NDArray[np.int64]

MOST_TOKENS = 1 << 20


def read_tokens(path: Path) -> Tokens:
    """The tokens of a text: an `.npy` of whole numbers, or their numbers in a text file, between blanks or commas, in
    brackets or not. Raises InputError."""
    if _is_npy(path):
        found = read_arrays(path)[ONLY].reshape(-1)
    else:
        try:
            words = path.read_text("utf-8")[: 24 * MOST_TOKENS].translate(str.maketrans("[],", "   ")).split()
            found = np.array([int(word) for word in words], np.int64)
        except OSError as e:
            raise InputError(f"{path}: cannot be read: {e.strerror or e}; give the path of a file of tokens") from e
        except (ValueError, OverflowError) as e:
            raise InputError(f"{path}: no numbers of tokens: {e}; give whole numbers between blanks") from e
    if found.dtype.kind not in "iu" or not 0 < len(found) <= MOST_TOKENS:
        raise InputError(f"{path}: {len(found)} numbers of type {found.dtype}; give 1 to {MOST_TOKENS} whole numbers")
    return found.astype(np.int64)


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
