"""A program on the device with its standard input and output kept open."""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
from contextlib import suppress
from typing import Protocol

from orchestrator.model.errors import DeviceSick, TransportLost

STDIN, STDOUT, STDERR, EXIT, CLOSE_STDIN = range(5)
"""Packets of adb's shell protocol 2: kind, size, content."""
_HEADER = struct.Struct("<BI")
_BLOCK = 1 << 16
_LARGEST = 16 << 20
_END_S = 5.0


class Stream(Protocol):
    """A stream for one thread; `shut` alone may come from another."""

    def fileno(self) -> int:
        """Return what becomes readable when there is something to receive."""
        ...

    def send(self, data: bytes) -> None:
        """Write to its standard input, at once. Raises TransportLost where it takes nothing."""
        ...

    def receive(self) -> bytes:
        """Return what it has printed since, without waiting; may be nothing. Raises TransportLost when it has ended."""
        ...

    def close_input(self) -> None:
        """Its standard input ends; what it still prints can be received."""
        ...

    def shut(self) -> None:
        """End the connection; the next `receive` raises."""
        ...

    def close(self) -> None: ...


class ShellStream:
    """A stream over the connection of an adb shell, on which the service was asked for."""

    def __init__(self, connection: socket.socket, serial: str) -> None:
        self._connection, self._serial = connection, serial
        self._waiting = bytearray()
        if connection.family != socket.AF_UNIX:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setblocking(False)
        self._said = b""

    def fileno(self) -> int:
        return self._connection.fileno()

    def send(self, data: bytes) -> None:
        self._packet(STDIN, data)

    def close_input(self) -> None:
        with suppress(TransportLost):
            self._packet(CLOSE_STDIN, b"")

    def receive(self) -> bytes:
        try:
            block = self._connection.recv(_BLOCK)
        except BlockingIOError:
            return b""
        except OSError as e:
            raise self._lost(str(e)) from e
        if not block:
            raise self._lost("the phone closed it")
        self._waiting += block
        return self._packets()

    def shut(self) -> None:
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._connection.close()

    def _packet(self, kind: int, data: bytes) -> None:
        try:
            self._connection.sendall(_HEADER.pack(kind, len(data)) + data)
        except OSError as e:
            raise self._lost(f"it takes no input: {e}") from e

    def _packets(self) -> bytes:
        printed = b""
        while len(self._waiting) >= _HEADER.size:
            kind, size = _HEADER.unpack_from(self._waiting)
            if kind not in (STDOUT, STDERR, EXIT) or size > _LARGEST:
                raise DeviceSick(
                    f"unreadable stream: packet {kind} of {size} bytes",
                    device=self._serial,
                    remedy="restart the phone's adbd (replug it)",
                )
            if len(self._waiting) < _HEADER.size + size:
                break
            content = bytes(self._waiting[_HEADER.size : _HEADER.size + size])
            del self._waiting[: _HEADER.size + size]
            if kind == EXIT and not printed:
                raise self._lost(f"the program ended with status {content[0] if content else 255}")
            if kind == EXIT:  # the next call raises
                self._waiting[:0] = _HEADER.pack(EXIT, size) + content
                break
            if kind == STDERR:
                self._said = (self._said + content)[-500:]
            printed += content if kind == STDOUT else b""
        return printed

    def _lost(self, why: str) -> TransportLost:
        said = self._said.decode(errors="replace").strip()
        return TransportLost(
            f"connection lost: {why}" + (f"; it said: {said}" if said else ""),
            device=self._serial,
            remedy="check cable, hub and phone",
        )


class PipeStream:
    """A stream over the pipes of a process of this host."""

    def __init__(self, command: str, serial: str) -> None:
        self._serial = serial
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", f"exec {command}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        assert self._process.stdin and self._process.stdout
        self._input, self._output = self._process.stdin, self._process.stdout
        os.set_blocking(self._output.fileno(), False)
        os.set_blocking(self._input.fileno(), False)

    def fileno(self) -> int:
        return self._output.fileno()

    def send(self, data: bytes) -> None:
        try:
            if os.write(self._input.fileno(), data) < len(data):
                raise BlockingIOError("its pipe is full")
        except (OSError, ValueError) as e:
            raise self._lost(f"it takes no input: {e}") from e

    def receive(self) -> bytes:
        try:
            block = os.read(self._output.fileno(), _BLOCK)
        except BlockingIOError:
            return b""
        if not block:
            raise self._lost(f"the program ended with status {self._process.wait(_END_S)}")
        return block

    def close_input(self) -> None:
        with suppress(OSError):
            self._input.close()

    def shut(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def close(self) -> None:
        self.close_input()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self.shut()
            self._process.wait()
        self._output.close()

    def _lost(self, why: str) -> TransportLost:
        return TransportLost(f"connection lost: {why}", device=self._serial, remedy="see its log on this host")
