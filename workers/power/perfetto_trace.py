"""Read the power rails of a perfetto trace, decoding only the fields of its protobuf that are needed.

Trace.packet = 1; TracePacket.power_rails = 40
PowerRails.rail_descriptor = 1 {index = 1, rail_name = 2, subsys_name = 3}
PowerRails.energy_data = 2 {index = 1, timestamp_ms = 2 (CLOCK_BOOTTIME), energy = 3 (uW s since boot)}
"""

from __future__ import annotations

from collections.abc import Iterator

from google.protobuf.empty_pb2 import Empty
from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

PACKET, POWER_RAILS, DESCRIPTOR, ENERGY = 1, 40, 1, 2


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
    try:
        message = Empty.FromString(content)
    except DecodeError as e:
        raise ValueError(f"no protobuf: {e}") from e
    return ((field.field_number, field.data) for field in UnknownFieldSet(message))


def _int(value: int | bytes) -> int:
    if not isinstance(value, int):
        raise ValueError("no power rails: a message stands where a number is expected")
    return value


def _bytes(value: int | bytes) -> bytes:
    if not isinstance(value, bytes):
        raise ValueError("no power rails: a number stands where a message is expected")
    return value
