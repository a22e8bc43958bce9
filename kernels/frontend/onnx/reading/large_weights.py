"""Find the large weights of a model's file, so that the rest can be read without them.

A file is a protobuf message: fields of a number, a length and a content (protobuf.dev, "Encoding"). Weights are the
`raw_data` of the tensors that are the graph's initializers.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from math import prod
from typing import BinaryIO, NamedTuple

import onnx

LARGE = 1 << 16
"""Bytes of a weight that stays in its file."""
_GRAPH, _INITIALIZER, _RAW_DATA = 7, 5, 9
_FIXED = {1: 8, 5: 4}
"""Bytes of a number that says no length, by its wire type."""
_BITS = {
    number: int(name.removeprefix("U").removeprefix("INT").removeprefix("FLOAT")[:1])
    for name, number in onnx.TensorProto.DataType.items()
    if name in ("INT4", "UINT4", "FLOAT4E2M1", "FLOAT6E2M3", "FLOAT6E3M2", "INT2", "UINT2")
}
"""Types whose elements share bytes."""


class _Field(NamedTuple):
    number: int
    start: int
    content: int
    end: int


def without_weights(file: BinaryIO, places: dict[str, int]) -> bytes:
    """Return a model's bytes but those of its large weights, and put into `places` where these begin, by name.

    Raises ValueError, or protobuf's DecodeError, for what is no such message.
    """
    return b"".join(
        _graph(file, field, places) if field.number == _GRAPH else _read(file, field)
        for field in _fields(file, 0, file.seek(0, os.SEEK_END))
    )


def stored_bytes(tensor: onnx.TensorProto) -> int:
    """Return the size of a tensor's raw data. Raises ValueError for a type that has none."""
    if tensor.data_type in _BITS:
        return -(-int(prod(tensor.dims)) * _BITS[tensor.data_type] // 8)
    try:
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
    except KeyError as e:
        raise ValueError(f"its type {tensor.data_type} is not known") from e
    if dtype.hasobject:
        raise ValueError("text has no external data")
    return int(prod(tensor.dims)) * int(dtype.itemsize)


def _graph(file: BinaryIO, field: _Field, places: dict[str, int]) -> bytes:
    fields = _fields(file, field.content, field.end)
    parts = (_weight(file, each, places) if each.number == _INITIALIZER else _read(file, each) for each in fields)
    return _message(_GRAPH, b"".join(parts))


def _weight(file: BinaryIO, field: _Field, places: dict[str, int]) -> bytes:
    """Return an initializer, without its numbers if these are many and whole bytes each."""
    if field.end - field.content > LARGE:
        fields = [*_fields(file, field.content, field.end)]
        raw = [each for each in fields if each.number == _RAW_DATA]
        head = b"".join(_read(file, each) for each in fields if each.number != _RAW_DATA)
        tensor = onnx.TensorProto.FromString(head)
        plain = tensor.data_type not in _BITS and tensor.data_location == onnx.TensorProto.DEFAULT
        if plain and tensor.name not in places and [each.end - each.content for each in raw] == [stored_bytes(tensor)]:
            places[tensor.name] = raw[0].content
            return _message(_INITIALIZER, head)
    return _read(file, field)


def _fields(file: BinaryIO, place: int, end: int) -> Iterator[_Field]:
    while place < end:
        file.seek(place)
        key = _varint(file)
        size = _FIXED.get(key & 7, 0)
        if key & 7 == 0:
            _varint(file)
        elif key & 7 == 2:
            size = _varint(file)
        elif not size:
            raise ValueError("no field begins so")
        content = file.tell()
        if content + size > end:
            raise ValueError("a field ends behind its message")
        yield _Field(key >> 3, place, content, content + size)
        place = content + size


def _read(file: BinaryIO, field: _Field) -> bytes:
    file.seek(field.start)
    return file.read(field.end - field.start)


def _varint(file: BinaryIO) -> int:
    value = 0
    for shift in range(0, 70, 7):
        byte = file.read(1)
        if not byte:
            break
        value |= (byte[0] & 127) << shift
        if byte[0] < 128:
            return value
    raise ValueError("no number")


def _message(number: int, content: bytes) -> bytes:
    size, text = len(content), [number << 3 | 2]
    while size > 127:
        text.append(size & 127 | 128)
        size >>= 7
    return bytes([*text, size]) + content
