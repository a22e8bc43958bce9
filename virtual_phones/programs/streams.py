"""Input and output of a command inside a phone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

Sink = Callable[[bytes], Awaitable[None]]


class Source(Protocol):
    """A source of a command's input."""

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

    @property
    def is_empty(self) -> bool:
        return not self._data

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
