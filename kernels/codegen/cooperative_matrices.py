"""Cooperative matrices of Khronos in SPIR-V that a compiler wrote with NVIDIA's older ones.

glslang, which is in `glslc`, knows GL_KHR_cooperative_matrix from 13.0 on and GL_NV_cooperative_matrix long before, and
drivers of phones offer the first alone. The two differ in the order of a few operands, and in that Khronos's types say
what a matrix is used for: that is read from the products (SPV_KHR_cooperative_matrix and SPV_NV_cooperative_matrix).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

_HEADER_WORDS, _BOUND = 5, 3
_EXTENSION, _CAPABILITY, _INTEGER, _CONSTANT, _TRUE, _FALSE, _LOAD = 10, 17, 21, 43, 41, 42, 61
_NV_TYPE, _NV_LOAD, _NV_STORE, _NV_PRODUCT = 5358, 5359, 5360, 5361
_KHR_TYPE, _KHR_LOAD, _KHR_STORE, _KHR_PRODUCT = 4456, 4457, 4458, 4459
_NV_CAPABILITY, _KHR_CAPABILITY = 5357, 6022
_NV_NAME, _KHR_NAME = b"SPV_NV_cooperative_matrix", b"SPV_KHR_cooperative_matrix"
_LEFT, _RIGHT, _SUM = 0, 1, 2
"""The uses of a matrix. Matrices by rows and by columns are 0 and 1, too."""

_Instruction = tuple[int, ...]


def as_khronos(module: bytes) -> bytes:
    """The same module with the matrices of SPV_KHR_cooperative_matrix; one that has none stays as it is."""
    words = struct.unpack(f"<{len(module) // 4}I", module)
    code = list(_instructions(words))
    if not any(_is(each, _NV_TYPE) for each in code):
        return module
    uses, numbers, flags = _uses(code), range(words[_BOUND], words[_BOUND] + 3), _flags(code)
    header = [*words[:_BOUND], words[_BOUND] + len(numbers), *words[_BOUND + 1 : _HEADER_WORDS]]
    out = [word for each in code for word in _rewritten(each, uses, numbers, flags)]
    return struct.pack(f"<{len(header) + len(out)}I", *header, *out)


def _instructions(words: tuple[int, ...]) -> Iterator[_Instruction]:
    at = _HEADER_WORDS
    while at < len(words):
        length = max(1, words[at] >> 16)
        yield words[at : at + length]
        at += length


def _is(instruction: _Instruction, code: int) -> bool:
    return instruction[0] & 0xFFFF == code


def _uses(code: list[_Instruction]) -> dict[int, int]:
    """Type -> what it is used for; the left and the right operand's types differ in their text."""
    types = {each[2]: each[1] for each in code if each[0] & 0xFFFF in (_LOAD, _NV_LOAD)}
    products = [each for each in code if _is(each, _NV_PRODUCT)]
    left, right = ({types[each[operand]] for each in products} for operand in (3, 4))
    if left & right:
        raise ValueError("one type of matrices is used on both sides of a product")
    return {**dict.fromkeys(left, _LEFT), **dict.fromkeys(right, _RIGHT)}


def _flags(code: list[_Instruction]) -> dict[int, int]:
    """The constants false and true, which say that a matrix lies by rows or by columns."""
    return {each[2]: int(_is(each, _TRUE)) for each in code if each[0] & 0xFFFF in (_TRUE, _FALSE)}


def _rewritten(each: _Instruction, uses: dict[int, int], numbers: range, flags: dict[int, int]) -> Iterable[int]:
    """`numbers`: where the constants 0, 1, 2 are; they are written behind the type of whole numbers."""
    code = each[0] & 0xFFFF
    if code == _INTEGER and each[2:] == (32, 0):
        constants = [(_CONSTANT, each[1], at, value) for value, at in enumerate(numbers)]
        return [*each, *(word for constant in constants for word in _written(*constant))]
    if code == _EXTENSION and _name(each) == _NV_NAME:
        return _written(_EXTENSION, *struct.unpack("<7I", _KHR_NAME.ljust(28, b"\0")))
    if code == _CAPABILITY and each[1] == _NV_CAPABILITY:
        return _written(_CAPABILITY, _KHR_CAPABILITY)
    if code == _NV_TYPE:
        return _written(_KHR_TYPE, *each[1:], numbers[uses.get(each[1], _SUM)])
    if code == _NV_LOAD:
        return _written(_KHR_LOAD, *each[1:4], numbers[flags[each[5]]], each[4], *each[6:])
    if code == _NV_STORE:
        return _written(_KHR_STORE, *each[1:3], numbers[flags[each[4]]], each[3], *each[5:])
    if code == _NV_PRODUCT:
        return _written(_KHR_PRODUCT, *each[1:])
    return each


def _written(code: int, *operands: int) -> list[int]:
    return [(len(operands) + 1) << 16 | code, *operands]


def _name(extension: _Instruction) -> bytes:
    return struct.pack(f"<{len(extension) - 1}I", *extension[1:]).rstrip(b"\0")
