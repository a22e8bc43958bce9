"""The cable between a virtual phone and the adb server: a listening port, and what may go wrong with it."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable

from .key import PublicKey
from .wire import Connection, Service

_LATENCY_S = 0.001
_BYTES_PER_S = 40e6
"""A USB 2 phone, which the `slow` fault multiplies; without it there is no delay at all."""
_BUFFER_BYTES = 2 << 20


class Cable:
    """Holds the phone's TCP port for its whole life, also while nothing listens there."""

    def __init__(
        self, open_service: Callable[[str], Service | None], banner: Callable[[], bytes], key: PublicKey
    ) -> None:
        self.silent = False
        self.slow_factor = 0.0
        """Times slower than a USB 2 cable; 0: as fast as the host."""
        self.authorized = asyncio.Event()
        self.authorized.set()
        self.flowing = asyncio.Event()
        self.flowing.set()
        self._open_service = open_service
        self._banner = banner
        self._key = key
        self._placeholder: socket.socket | None = None
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    @property
    def port(self) -> int:
        """The TCP port on 127.0.0.1, chosen by `plug`."""
        return int(self._placeholder.getsockname()[1]) if self._placeholder else 0

    @property
    def plugged(self) -> bool:
        return self._server is not None

    async def plug(self, port: int = 0) -> None:
        """Listen; on the port of the first call in all later ones. Raises OSError where the port is taken."""
        if self._placeholder is None:
            self._placeholder = _bound(port)
        if self._server is None:
            listener = _bound(self.port)
            self._server = await asyncio.start_server(self._accept, sock=listener, limit=_BUFFER_BYTES)

    async def unplug(self) -> None:
        """Drop all connections and refuse new ones; the port stays ours."""
        server, self._server = self._server, None
        if server:
            server.close()
        await self.drop()

    async def drop(self) -> None:
        """Drop all connections; the adb server may connect again at once."""
        tasks = list(self._connections)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def close(self) -> None:
        """Give the port back."""
        await self.unplug()
        if self._placeholder:
            self._placeholder.close()
            self._placeholder = None

    async def carry(self, size: int) -> None:
        """Let a message of `size` bytes pass: late on a slow cable, never on a hung one."""
        if not self.flowing.is_set():
            await self.flowing.wait()
        if self.slow_factor:
            await asyncio.sleep(self.slow_factor * (_LATENCY_S + size / _BYTES_PER_S))

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        sock = writer.get_extra_info("socket")
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            with contextlib.suppress(asyncio.CancelledError):
                await Connection(reader, writer, self, self._banner(), self._key, self._open_service).serve()
        finally:
            self._connections.discard(task)
            writer.transport.abort()


def _bound(port: int) -> socket.socket:
    """A loopback socket that is bound but does not listen: it keeps the port, and connecting is refused."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    sock.bind(("127.0.0.1", port))
    return sock
