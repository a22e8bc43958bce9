"""The head of a GGUF file: what it says of its model, and where its tensors lie.

Source of the format: docs/gguf.md of ggml. The package `gguf` reads heads, too, but makes an array of each word of a
vocabulary, which takes seconds, and trusts the numbers that it reads. So long lists are passed over here, and each
length is held against the bytes that are left.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from kernels.errors import ModelError

MAGIC = b"GGUF"
VERSIONS = (2, 3)
AGAIN = "copy or download it again"
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_TEXT, _LIST = 8, 9
_MOST_AXES, _MOST_LISTED = 4, 1 << 12
"""Axes of a tensor, and numbers of a list that are kept: of vocabularies only the length is."""


@dataclass(frozen=True)
class Tensor:
    """A stored tensor: `shape` row-major, in numbers; `start` and `size` in bytes of the file."""

    name: str
    shape: tuple[int, ...]
    kind: str
    start: int
    size: int


@dataclass(frozen=True)
class Header:
    """Values that the file says, by key, and its tensors by name. A list of words, or a long one, is its length."""

    said: Mapping[str, Any]
    tensors: Mapping[str, Tensor]


def read_header(path: Path) -> Header:
    """Read the head of a file. Raises ModelError for what is no GGUF, or not whole."""
    try:
        if not path.stat().st_size:
            raise ModelError(f"{path}: empty; {AGAIN}")
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return _Reader(path, content).header()
    except (OSError, ValueError) as e:
        why = (e.strerror if isinstance(e, OSError) else "") or e
        raise ModelError(f"{path}: cannot be read: {why}; give the path of a .gguf file") from e


class _Reader:
    """A walk over the head."""

    def __init__(self, path: Path, content: mmap.mmap) -> None:
        self._path, self._content, self._at = path, content, 0

    def header(self) -> Header:
        if self._content[:4] != MAGIC:
            raise ModelError(f"{self._path}: no GGUF file: it does not begin with {MAGIC.decode()}; {AGAIN}")
        self._at = 4
        version = self._number("I")
        if version not in VERSIONS:
            turned = int.from_bytes(int(version).to_bytes(4, "little"), "big")
            how = "it is big-endian: convert it (gguf-convert-endian)" if turned in VERSIONS else "convert it again"
            raise ModelError(f"{self._path}: version {version} of GGUF; 2 and 3 are known: {how}")
        tensors, pairs = self._count("Q", 24, "tensors"), self._count("Q", 12, "keys")
        said: dict[str, Any] = {}
        for _ in range(pairs):
            key = self._text()
            said[key] = self._value(self._number("I"))
        return Header(said, self._tensors(tensors, said.get("general.alignment", 32)))

    def _tensors(self, count: int, alignment: Any) -> dict[str, Tensor]:
        from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

        if not isinstance(alignment, int) or alignment < 1 or alignment & (alignment - 1):
            raise self._damaged(f"general.alignment is {alignment!r}, no power of two")
        listed = []
        for _ in range(count):
            name, axes = self._text(), self._number("I")
            if axes > _MOST_AXES:
                raise self._damaged(f"tensor {name!r} has {axes} axes, at most {_MOST_AXES} are known")
            extents = tuple(int(self._number("Q")) for _ in range(axes))[::-1]
            listed.append((name, extents, self._number("I"), int(self._number("Q"))))
        first, found = -(-self._at // alignment) * alignment, dict[str, Tensor]()
        for name, shape, code, offset in listed:
            try:
                kind = GGMLQuantizationType(code)
            except ValueError as e:
                raise ModelError(
                    f"{self._path}: tensor {name!r} is stored in type {code}, which the package gguf does not know; "
                    "convert the model to Q8_0 or F16"
                ) from e
            block, bytes_each = GGML_QUANT_SIZES[kind]
            if name in found or 0 in shape or (shape or (1,))[-1] % block or prod(shape) >= 1 << 40:
                raise self._damaged(f"tensor {name!r} of {kind.name} has shape {shape}, or is there twice")
            size = prod(shape) // block * bytes_each
            if first + offset + size > len(self._content):
                raise self._damaged(
                    f"tensor {name!r} ends at byte {first + offset + size} of {len(self._content)}: the file is cut"
                )
            found[name] = Tensor(name, shape, kind.name, first + offset, size)
        return found

    def _value(self, kind: int, depth: int = 0) -> Any:
        if kind in _SCALARS:
            return self._number(_SCALARS[kind])
        if kind == _TEXT:
            return self._text()
        if kind != _LIST or depth > 1:
            raise self._damaged(f"a value of type {kind}, which GGUF has not")
        inner = self._number("I")
        if inner in _SCALARS:
            width = struct.calcsize(f"<{_SCALARS[inner]}")
            count = self._count("Q", width, "numbers")
            kept = [*struct.unpack_from(f"<{min(count, _MOST_LISTED)}{_SCALARS[inner]}", self._content, self._at)]
            self._at += count * width
            return kept if count <= _MOST_LISTED else count
        read: Callable[[], Any] = self._pass_text if inner == _TEXT else lambda: self._value(inner, depth + 1)
        count = self._count("Q", 8, "values")
        for _ in range(count):
            read()
        return count

    def _text(self) -> str:
        start = self._at + 8
        self._pass_text()
        try:
            return self._content[start : self._at].decode()
        except UnicodeDecodeError as e:
            raise self._damaged(f"a word at byte {start} is no UTF-8") from e

    def _pass_text(self) -> None:
        count = self._count("Q", 1, "bytes of a word")
        self._at += count

    def _count(self, letter: str, each: int, what: str) -> int:
        """Read a number of things that take so many bytes each, at least."""
        count = int(self._number(letter))
        if count * each > len(self._content) - self._at:
            raise self._damaged(f"{count} {what} at byte {self._at} are more than the file holds: it is cut")
        return count

    def _number(self, letter: str) -> Any:
        try:
            (value,) = struct.unpack_from(f"<{letter}", self._content, self._at)
        except struct.error as e:
            raise self._damaged(f"its head ends at byte {self._at}: the file is cut") from e
        self._at += struct.calcsize(f"<{letter}")
        return value

    def _damaged(self, what: str) -> ModelError:
        return ModelError(f"{self._path}: damaged: {what}; {AGAIN}")
