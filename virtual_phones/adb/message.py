"""Framing of the ADB protocol: 24 bytes of header, then the payload (AOSP, packages/modules/adb/protocol.txt)."""

from __future__ import annotations

import asyncio
import struct
from dataclasses import dataclass
from typing import Final

VERSION: Final = 0x01000001
"""The version from which on the receiver does not check the payload's sum."""
MAX_PAYLOAD: Final = 1 << 20

_HEADER = struct.Struct("<4sIIIII")


class ProtocolError(Exception):
    """The peer sent something that is no ADB message; the connection is of no more use."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message. `arg0` is the sender's stream, `arg1` the receiver's, except in CNXN (version, payload limit)
    and AUTH (kind)."""

    command: bytes
    """Four letters: CNXN, AUTH, OPEN, OKAY, WRTE, CLSE."""
    arg0: int
    arg1: int
    data: bytes = b""


def encode_header(message: Message, *, with_sum: bool = False) -> bytes:
    """The header of a message; `with_sum` for peers older than VERSION, which check the sum of the bytes."""
    total = sum(message.data) & 0xFFFFFFFF if with_sum else 0
    magic = int.from_bytes(message.command, "little") ^ 0xFFFFFFFF
    return _HEADER.pack(message.command, message.arg0, message.arg1, len(message.data), total, magic)


async def read_message(reader: asyncio.StreamReader) -> Message:
    """Read one message. Raises asyncio.IncompleteReadError at the end of the stream, ProtocolError on garbage."""
    header = await reader.readexactly(_HEADER.size)
    command, arg0, arg1, length, _sum, magic = _HEADER.unpack(header)
    if int.from_bytes(command, "little") ^ 0xFFFFFFFF != magic:
        raise ProtocolError(f"bad magic in header {header.hex()}")
    if length > MAX_PAYLOAD:
        raise ProtocolError(f"payload of {length} bytes exceeds {MAX_PAYLOAD}")
    return Message(command, arg0, arg1, await reader.readexactly(length) if length else b"")
