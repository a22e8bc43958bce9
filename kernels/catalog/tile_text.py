"""A tile as text: numbers between crosses."""

from __future__ import annotations

from kernels.errors import OptionError


def numbers(words: str, meaning: str, example: str) -> tuple[int, ...]:
    """`8x2x16` -> (8, 2, 16), as many numbers as `example` has, each from 1 on. Raises OptionError."""
    parts = words.split("x")
    if len(parts) != len(example.split("x")) or not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise OptionError(f"tile {words!r} is not known; write {meaning}, e.g. {example}")
    return tuple(map(int, parts))
