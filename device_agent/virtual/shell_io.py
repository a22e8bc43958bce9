"""Input and output of a command inside a phone, and the two shell protocols that carry them over a stream."""

from __future__ import annotations

import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from .adb_wire import Stream

_STDIN, _STDOUT, _STDERR, _EXIT, _CLOSE_STDIN = range(5)
_HEADER = struct.Struct("<BI")

Sink = Callable[[bytes], Awaitable[None]]


class Source(Protocol):
    """Where a command's input comes from."""

    async def read(self) -> bytes:
        """The next block; b"" at the end."""
        ...


@dataclass(frozen=True, slots=True)
class Io:
    """The three standard streams of a command."""

    stdin: Source
    out: Sink
    err: Sink


class BytesSource:
    """Input from memory."""

    def __init__(self, data: bytes = b"") -> None:
        self._data = data

    async def read(self) -> bytes:
        data, self._data = self._data, b""
        return data


async def discard(data: bytes) -> None:
    """A sink like /dev/null."""


class BytesSink:
    """Output into memory."""

    def __init__(self) -> None:
        self.data = bytearray()

    async def __call__(self, data: bytes) -> None:
        self.data += data


async def read_all(source: Source) -> bytes:
    """The whole input."""
    blocks = []
    while block := await source.read():
        blocks.append(block)
    return b"".join(blocks)


class ShellV2:
    """Shell protocol with separate standard error and an exit status: packets of (kind, length, data)."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._buffer = bytearray()
        self._ended = False

    async def read(self) -> bytes:
        while not self._ended:
            if len(self._buffer) >= _HEADER.size:
                kind, length = _HEADER.unpack_from(self._buffer)
                if len(self._buffer) >= _HEADER.size + length:
                    data = bytes(self._buffer[_HEADER.size : _HEADER.size + length])
                    del self._buffer[: _HEADER.size + length]
                    self._ended = kind == _CLOSE_STDIN
                    if kind == _STDIN and data:
                        return data
                    continue
            block = await self._stream.read()
            self._ended = not block
            self._buffer += block
        return b""

    async def out(self, data: bytes) -> None:
        await self._send(_STDOUT, data)

    async def err(self, data: bytes) -> None:
        await self._send(_STDERR, data)

    async def exit(self, status: int) -> None:
        """Report the exit status; nothing may follow."""
        await self._stream.write(_HEADER.pack(_EXIT, 1) + bytes([status & 0xFF]))

    async def _send(self, kind: int, data: bytes) -> None:
        if data:
            await self._stream.write(_HEADER.pack(kind, len(data)) + data)


class RawShell:
    """Shell protocol 1 and `exec:`: one stream for both outputs, and no exit status."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    async def read(self) -> bytes:
        return await self._stream.read()

    async def out(self, data: bytes) -> None:
        if data:
            await self._stream.write(data)

    err = out

    async def exit(self, status: int) -> None:
        """There is no way to tell."""
