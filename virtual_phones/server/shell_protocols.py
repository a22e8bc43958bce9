"""The two shell protocols that carry a command's input and output over a stream."""

from __future__ import annotations

import asyncio
import struct

from virtual_phones.adb.wire import Stream, StreamClosed

_STDIN, _STDOUT, _STDERR, _EXIT, _CLOSE_STDIN = range(5)
_HEADER = struct.Struct("<BI")

PIPE_BYTES = 64 << 10
"""The bytes that a command may print ahead of the host, as through a pipe of Linux."""
LOOK_S = 0.01


class Pipe:
    """The pipe between a command and its stream, as on a phone: a command that prints little does not wait for the
    host, and what it prints at once is sent at once."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._waiting = bytearray()
        self._sender: asyncio.Task[None] | None = None
        self._broken = False

    async def write(self, data: bytes) -> None:
        """Returns when there is room. Raises StreamClosed where the host has gone."""
        self._waiting += data
        if self._sender is None or self._sender.done():
            self._sender = asyncio.create_task(self._send())
        while len(self._waiting) > PIPE_BYTES and not self._broken:
            await asyncio.wait([self._sender], timeout=LOOK_S)
        if self._broken:
            raise StreamClosed

    async def flush(self) -> None:
        """Returns when everything was sent. Raises StreamClosed."""
        if self._sender is not None:
            await self._sender
        if self._broken:
            raise StreamClosed

    async def _send(self) -> None:
        try:
            while self._waiting:
                block = bytes(self._waiting)
                self._waiting.clear()
                await self._stream.write(block)
        except StreamClosed:
            self._broken = True


class ShellV2:
    """Shell protocol with separate standard error and an exit status: packets of (kind, length, data)."""

    def __init__(self, stream: Stream) -> None:
        self._stream, self._pipe = stream, Pipe(stream)
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
        await self._pipe.write(_HEADER.pack(_EXIT, 1) + bytes([status & 0xFF]))
        await self._pipe.flush()

    async def _send(self, kind: int, data: bytes) -> None:
        if data:
            await self._pipe.write(_HEADER.pack(kind, len(data)) + data)


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
