"""Read what a perfetto trace says of power, decoding only the fields of its protobuf that are needed.

Trace.packet = 1; TracePacket.timestamp = 8 (CLOCK_BOOTTIME, ns), .battery = 38, .power_rails = 40,
.compressed_packets = 50 (a Trace, deflated)
BatteryCounters {charge_counter_uah = 1, current_ua = 3, voltage_uv = 7}
PowerRails.rail_descriptor = 1 {index = 1, rail_name = 2, subsys_name = 3}
PowerRails.energy_data = 2 {index = 1, timestamp_ms = 2 (CLOCK_BOOTTIME), energy = 3 (uW s since boot)}
(perfetto's protos/perfetto/trace/power/*.proto)

The packets are taken one by one, so that a long trace needs no more memory than its power.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from mmap import MADV_DONTNEED, mmap

from google.protobuf.empty_pb2 import Empty
from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

PACKET_TAG = 0x0A
BATTERY_TAG, RAILS_TAG, COMPRESSED_TAG = b"\xb2\x02", b"\xc2\x02", b"\x92\x03"
"""Tags before what is in a packet: one without them, as nearly all are, says nothing of power."""
FORGOTTEN_BYTES = 1 << 26
"""The bytes of a mapped file after which the system may have its memory back."""
TIMESTAMP, BATTERY, POWER_RAILS, COMPRESSED, DESCRIPTOR, ENERGY = 8, 38, 40, 50, 1, 2
LARGEST_INFLATED = 1 << 28
NS_PER_MS = 1_000_000


@dataclass
class Counters:
    """Counters from the packets. A rail is named by its descriptor; energies in uW s; battery's figures may be None."""

    rails: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    """Rail -> (time in ns, energy)."""
    battery: list[tuple[int, int | None, int | None, int | None]] = field(default_factory=list)
    """(time in ns, current in uA, voltage in uV, charge in uAh)."""


def rails_of_trace(trace: bytes) -> dict[str, list[tuple[int, int]]]:
    """Rail -> (time in ns, energy in uW s). Raises ValueError for what is no trace."""
    return counters_of_trace(trace).rails


def counters_of_trace(trace: bytes | mmap) -> Counters:
    """Rails and battery, in the order of the packets. Raises ValueError for what is no trace."""
    names: dict[int, str] = {}
    readings: dict[int, list[tuple[int, int]]] = {}
    found = Counters()
    with memoryview(trace) as content:
        for packet in _packets(content, trace if isinstance(trace, mmap) else None):
            if BATTERY_TAG not in packet and RAILS_TAG not in packet:
                continue
            fields = list(_fields(packet))
            time_ns = next((_int(value) for number, value in fields if number == TIMESTAMP), 0)
            for number, value in fields:
                if number == POWER_RAILS:
                    _take_rails(_bytes(value), names, readings)
                elif number == BATTERY:
                    each = {key: _signed(_int(figure)) for key, figure in _fields(_bytes(value)) if key in (1, 3, 7)}
                    found.battery.append((time_ns, each.get(3), each.get(7), each.get(1)))
    for index, each_rail in readings.items():
        found.rails[names.get(index, f"rail {index}")] = each_rail
    return found


def _take_rails(rails: bytes, names: dict[int, str], readings: dict[int, list[tuple[int, int]]]) -> None:
    for number, value in _fields(rails):
        if number not in (DESCRIPTOR, ENERGY):
            continue
        fields = dict(_fields(_bytes(value)))
        index = _int(fields.get(1, 0))
        if number == DESCRIPTOR:
            names[index] = _bytes(fields.get(2, b"")).decode(errors="replace")
        else:
            reading = _int(fields.get(2, 0)) * NS_PER_MS, _int(fields.get(3, 0))
            readings.setdefault(index, []).append(reading)


def _packets(trace: memoryview, mapped: mmap | None = None) -> Iterator[bytes]:
    """Each packet of a trace, those inside deflated ones too."""
    at = forgotten = 0
    while at < len(trace):
        if trace[at] != PACKET_TAG:
            raise ValueError(f"no perfetto trace: no packet begins at byte {at}")
        length, start = _varint(trace, at + 1)
        at = start + length
        if at > len(trace):
            raise ValueError(f"the trace is cut off: its packet at byte {start} has {length} bytes")
        packet = bytes(trace[start:at])
        yield packet
        if packet.startswith(COMPRESSED_TAG):  # which stands alone in its packet
            for number, value in _fields(packet):
                if number == COMPRESSED:
                    yield from _packets(memoryview(_inflated(_bytes(value))))
        if mapped is not None and at - forgotten > FORGOTTEN_BYTES:
            mapped.madvise(MADV_DONTNEED)
            forgotten = at


def _inflated(content: bytes) -> bytes:
    try:
        stream = zlib.decompressobj()
        inflated = stream.decompress(content, LARGEST_INFLATED)
    except zlib.error as e:
        raise ValueError(f"its deflated packets cannot be read: {e}") from e
    if stream.unconsumed_tail:
        raise ValueError(f"a deflated packet holds more than {LARGEST_INFLATED} bytes")
    return inflated


def _varint(content: memoryview, at: int) -> tuple[int, int]:
    """A number in base 128, and where it ends."""
    if at < len(content) and content[at] < 0x80:
        return content[at], at + 1
    value = 0
    for shift in range(0, 64, 7):
        if at >= len(content):
            break
        byte = content[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if not byte & 0x80:
            return value, at
    raise ValueError(f"no perfetto trace: no length at byte {at}")


def _signed(value: int) -> int:
    """An int64 as protobuf writes it."""
    return value - (1 << 64) if value >= 1 << 63 else value


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
