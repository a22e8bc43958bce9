"""The phone's end of one ADB connection: handshake, authorisation, and multiplexed streams with flow control.

A stream has one WRTE in flight at a time in each direction (no `delayed_ack` feature): the receiver answers OKAY when
it has taken the data in, and only then may the sender go on.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import os
from collections.abc import Awaitable, Callable
from typing import Protocol

from .key import TOKEN_BYTES, PublicKey
from .message import MAX_PAYLOAD, VERSION, Message, ProtocolError, encode_header, read_message

log = logging.getLogger(__name__)

_AUTH_TOKEN, _AUTH_SIGNATURE = 1, 2
_HANG_UP_LOOK_S, _HANG_UP_LOOKS = 0.05, 40

Service = Callable[["Stream"], Awaitable[None]]


class StreamClosed(Exception):
    """The host closed the stream, or the cable is gone."""


class Link(Protocol):
    """State of the cable, which faults change."""

    silent: bool
    """The phone does not answer the handshake: the adb server shows `offline`."""
    authorized: asyncio.Event
    """Clear while the person at the phone has taken back the trust in the host's key."""

    async def carry(self, size: int) -> None:
        """Return when a message of `size` bytes has passed: late on a slow cable, never on a hung one."""
        ...


class Stream:
    """One opened service. `read` is for one task; blocks of several writers may alternate."""

    def __init__(self, connection: Connection, local: int, remote: int) -> None:
        self._connection = connection
        self._local = local
        self._remote = remote
        self._inbox: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._credit = asyncio.Semaphore(1)
        self._closed = False

    async def read(self) -> bytes:
        """The next block that the host sent; b"" once the stream is closed."""
        data = None if self._closed and self._inbox.empty() else await self._inbox.get()
        if data is None:
            return b""
        await self._connection.send(Message(b"OKAY", self._local, self._remote))
        return data

    async def write(self, data: bytes) -> None:
        """Send data in order, waiting until the host has room. Raises StreamClosed."""
        limit = self._connection.max_payload
        for start in range(0, len(data), limit):
            await self._credit.acquire()
            if self._closed:
                raise StreamClosed
            block = data if len(data) <= limit else data[start : start + limit]
            await self._connection.send(Message(b"WRTE", self._local, self._remote, block))

    @property
    def drained(self) -> bool:
        """Return whether the service has read everything that came, and the end."""
        return self._inbox.empty()

    def deliver(self, data: bytes) -> None:
        self._inbox.put_nowait(data)

    def acknowledge(self) -> None:
        self._credit.release()

    def shut(self) -> None:
        """The other end is gone: readers see the end, writers an error."""
        self._closed = True
        self._inbox.put_nowait(None)
        self._credit.release()


class Connection:
    """One TCP connection from an adb server. `open_service` maps a destination such as `shell:ls` to its service,
    or to None where the phone has none (answered with CLSE, as adbd does). A host is admitted when `key` has signed the
    token that this connection was given last; a public key that it offers is never taken."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        link: Link,
        banner: bytes,
        key: PublicKey,
        open_service: Callable[[str], Service | None],
    ) -> None:
        self.max_payload = MAX_PAYLOAD
        self._reader = reader
        self._writer = writer
        self._link = link
        self._banner = banner
        self._key = key
        self._token = b""
        self._open_service = open_service
        self._with_sum = False
        self._online = False
        self._ids = itertools.count(1)
        self._streams: dict[int, Stream] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._hanging_up: set[asyncio.Task[None]] = set()
        self._admission: asyncio.Task[None] | None = None

    async def serve(self) -> None:
        """Answer until the connection ends. Services that still run are cancelled then."""
        try:
            while True:
                message = await read_message(self._reader)
                await self._link.carry(len(message.data))
                await self._dispatch(message)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        except ProtocolError as error:
            log.warning("closing a connection: %s", error)
        finally:
            await self._end()

    async def send(self, message: Message) -> None:
        """Send one message. Raises StreamClosed where the connection is gone."""
        await self._link.carry(len(message.data))
        if self._writer.is_closing():
            raise StreamClosed
        self._writer.write(encode_header(message, with_sum=self._with_sum) + message.data)
        try:
            await self._writer.drain()
        except ConnectionError as error:
            raise StreamClosed from error

    def close(self) -> None:
        """Pull the cable: `serve` ends soon."""
        self._writer.transport.abort()

    async def _dispatch(self, message: Message) -> None:
        if message.command == b"CNXN":
            await self._greet(message)
        elif message.command == b"AUTH":
            if message.arg0 == _AUTH_SIGNATURE:
                await self._check(message.data)
        elif not self._online:
            pass  # streams are for admitted hosts; adbd drops what else they send
        elif message.command == b"OPEN":
            await self._open(message)
        elif stream := self._streams.get(message.arg1):
            self._pass_on(stream, message)

    def _pass_on(self, stream: Stream, message: Message) -> None:
        if message.command == b"WRTE":
            stream.deliver(message.data)
        elif message.command == b"OKAY":
            stream.acknowledge()
        elif message.command == b"CLSE":
            stream.shut()
            hang_up = asyncio.create_task(self._hang_up(stream, self._tasks[message.arg1]))
            self._hanging_up.add(hang_up)
            hang_up.add_done_callback(self._hanging_up.discard)

    async def _hang_up(self, stream: Stream, task: asyncio.Task[None]) -> None:
        """End a service whose stream the host closed, after a moment to read what came before."""
        for _ in range(_HANG_UP_LOOKS):
            await asyncio.sleep(_HANG_UP_LOOK_S)
            if stream.drained:
                break
        task.cancel()

    async def _greet(self, message: Message) -> None:
        self._with_sum = message.arg0 < VERSION
        self.max_payload = min(message.arg1, MAX_PAYLOAD)
        if self._link.silent:
            return
        await self._ask_for_signature()

    async def _ask_for_signature(self) -> None:
        self._token = os.urandom(TOKEN_BYTES)
        with contextlib.suppress(StreamClosed):
            await self.send(Message(b"AUTH", _AUTH_TOKEN, 0, self._token))

    async def _check(self, signature: bytes) -> None:
        """Admit the farm's own key, and ask everybody else again: a token is good for one answer."""
        token, self._token = self._token, b""
        if self._key.verifies(token, signature) and self._admission is None:
            self._admission = asyncio.create_task(self._admit())
        if self._admission is None or not self._link.authorized.is_set():
            await self._ask_for_signature()

    async def _admit(self) -> None:
        await self._link.authorized.wait()
        self._online = True
        with contextlib.suppress(StreamClosed):
            await self.send(Message(b"CNXN", VERSION, MAX_PAYLOAD, self._banner))

    async def _open(self, message: Message) -> None:
        destination = message.data.rstrip(b"\0").decode("utf-8", "surrogateescape")
        service = self._open_service(destination)
        if service is None:
            await self.send(Message(b"CLSE", 0, message.arg0))
            return
        local = next(self._ids)
        stream = self._streams[local] = Stream(self, local, message.arg0)
        await self.send(Message(b"OKAY", local, message.arg0))
        self._tasks[local] = asyncio.create_task(self._run(service, stream, local, message.arg0))

    async def _run(self, service: Service, stream: Stream, local: int, remote: int) -> None:
        try:
            await service(stream)
        except StreamClosed:
            pass
        except Exception:
            log.exception("a service failed")
        finally:
            del self._streams[local], self._tasks[local]
        with contextlib.suppress(StreamClosed):
            await self.send(Message(b"CLSE", local, remote))

    async def _end(self) -> None:
        self._writer.close()
        for stream in self._streams.values():
            stream.shut()
        tasks = [*self._tasks.values(), *self._hanging_up, *([self._admission] if self._admission else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
