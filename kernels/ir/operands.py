"""Shapes of operands as patterns: what must fit what is declared in one line per operation.

A pattern is extents between blanks: a letter or word is any number, the same one wherever it stands among the operands
of a node; `...` at the end: any further extents; `scalar`: one number, with at most one dimension.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kernels.errors import ModelError

Shape = tuple[int, ...]


def bind(operands: Sequence[tuple[str, str, Shape | None]]) -> dict[str, int]:
    """Check (name, pattern, shape) of each operand, shape None where it is absent; returns the extents by their letter.

    Raises ModelError that names the operand, with what was expected and found.
    """
    extents: dict[str, int] = {}
    for name, pattern, shape in operands:
        if shape is None:
            continue
        found = _bound(pattern.split(), shape, extents)
        if found is None:
            raise ModelError(f"{name} has shape {shape}; expected {_expected(pattern.split(), extents)}")
        extents = found
    return extents


def _bound(pattern: list[str], shape: Shape, extents: Mapping[str, int]) -> dict[str, int] | None:
    """The extents with those of one more operand; None where it does not fit."""
    if pattern == ["scalar"]:
        return dict(extents) if shape in ((), (1,)) else None
    letters = [letter for letter in pattern if letter != "..."]
    if len(shape) < len(letters) or (len(shape) > len(letters) and "..." not in pattern):
        return None
    found = dict(extents)
    fits = all(found.setdefault(letter, extent) == extent for letter, extent in zip(letters, shape, strict=False))
    return found if fits else None


def _expected(pattern: list[str], extents: Mapping[str, int]) -> str:
    if pattern == ["scalar"]:
        return "a scalar"
    known = ", ".join(f"{letter} = {extents[letter]}" for letter in pattern if letter in extents)
    return f"({', '.join(pattern)}{',' if len(pattern) == 1 else ''}){' with ' + known if known else ''}"
