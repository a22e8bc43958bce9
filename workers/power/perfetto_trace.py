"""Reads the power rails of a perfetto trace: the few fields that are needed of its protobuf.

Trace.packet = 1; TracePacket.power_rails = 40
PowerRails.rail_descriptor = 1 {index = 1, rail_name = 2, subsys_name = 3}
PowerRails.energy_data = 2 {index = 1, timestamp_ms = 2 (CLOCK_BOOTTIME), energy = 3 (uW s since boot)}
"""

from __future__ import annotations

from collections.abc import Iterator

PACKET, POWER_RAILS, DESCRIPTOR, ENERGY = 1, 40, 1, 2
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


def rails_of_trace(trace: bytes) -> dict[str, list[tuple[int, int]]]:
    """Rail -> (time in ns, energy in uW s). Raises ValueError for what is no trace."""
    names: dict[int, str] = {}
    readings: dict[int, list[tuple[int, int]]] = {}
    for packet in _messages(trace, PACKET):
        for rails in _messages(packet, POWER_RAILS):
            for descriptor in _messages(rails, DESCRIPTOR):
                fields = dict(_fields(descriptor))
                names[_int(fields.get(1, 0))] = _bytes(fields.get(2, b"")).decode(errors="replace")
            for energy in _messages(rails, ENERGY):
                fields = dict(_fields(energy))
                reading = _int(fields.get(2, 0)) * 1_000_000, _int(fields.get(3, 0))
                readings.setdefault(_int(fields.get(1, 0)), []).append(reading)
    return {names.get(index, f"rail {index}"): each for index, each in readings.items()}


def _messages(content: bytes, number: int) -> Iterator[bytes]:
    return (_bytes(value) for found, value in _fields(content) if found == number)


def _fields(content: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Number and value of each field: an integer, or the bytes of a string or message."""
    at = 0
    while at < len(content):
        key, at = _varint(content, at)
        kind = key & 7
        if kind == VARINT:
            value, at = _varint(content, at)
            yield key >> 3, value
            continue
        size, at = _varint(content, at) if kind == BYTES else ({FIXED64: 8, FIXED32: 4}.get(kind, -1), at)
        if size < 0 or at + size > len(content):
            raise ValueError(f"no protobuf: field {key >> 3} of wire type {kind} at byte {at}")
        yield key >> 3, content[at : at + size]
        at += size


def _varint(content: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(content) and shift < 70:
        byte = content[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
    raise ValueError(f"no protobuf: a number does not end at byte {at}")


def _int(value: int | bytes) -> int:
    if isinstance(value, bytes):
        raise ValueError("no power rails: a message stands where a number is expected")
    return value


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ValueError("no power rails: a number stands where a message is expected")
    return value
