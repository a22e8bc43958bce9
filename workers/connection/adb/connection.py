"""A phone by its adb address."""

from __future__ import annotations

import secrets
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import adbutils

from kernels.errors import checkpoint
from orchestrator.model.errors import AdbDown, DeviceSick, DeviceSlow, ServiceDown, TransportLost, Unsupported
from orchestrator.model.quantity import counted
from workers.connection import batch
from workers.connection.addresses import by_call
from workers.connection.base import ShellResult
from workers.connection.host_faults import is_of_host
from workers.connection.quote import quote
from workers.connection.stream import ShellStream, Stream

from .server import AdbServer
from .stream import CHUNK_BYTES, WENT_AWAY, AdbStream

FOLDER = "/data/local/tmp/pocketfarm"
MAX_PULLED_BYTES = 1 << 30
"""The most bytes of one pulled file: no file of the farm is so long, and this host's disk is not for longer ones."""
MAX_OUTPUT_BYTES = 64 << 20
"""A command that prints more than this is cut off: the host's memory is not the phone's to fill."""
ANSWER_S, LOOK_S = 5.0, 0.5
"""The time that adbd may take to say that it is there; and between two looks whether a command is to be ended."""
_SHELL = "shell,v2,raw:"
_STDOUT, _STDERR, _EXIT, _CLOSE_STDIN = 1, 2, 3, 4


class AdbConnection:
    """A phone by its adb address; implements `DeviceConnection`. Holds no stream between calls: it survives the cable.

    `serial`: what the farm calls it, where that is known.
    """

    folder = FOLDER

    def __init__(self, address: str, server: AdbServer, *, serial: str = "") -> None:
        self.address = address
        self.serial = serial or address
        self._server = server

    def shell(self, argv: Sequence[str], *, deadline_s: float = 10.0) -> ShellResult:
        return self._run(quote(argv), deadline_s)

    def shells(
        self, commands: Sequence[Sequence[str]], *, deadline_s: float = 10.0, guard: int | None = None
    ) -> list[ShellResult]:
        if not commands:
            return []
        mark = secrets.token_hex(8)
        found = batch.split(self._run(batch.script(commands, mark, guard), deadline_s, mark, len(commands)), mark)
        if len(found) not in (len(commands), guard):
            raise DeviceSick(
                f"unreadable answer: {len(found)} of {counted(len(commands), 'command')} ended: "
                f"{quote(commands[0])[:200]}; ...",
                device=self.serial,
                remedy="restart the phone's adbd (replug it), then look at what it prints",
            )
        return found

    def _run(self, command: str, deadline_s: float, mark: str = "", marks: int = 0) -> ShellResult:
        with self._service(f"{_SHELL}{command}", command, deadline_s) as stream:
            with suppress(BrokenPipeError, ConnectionResetError):  # it may have ended already: what it said is there
                stream.write(struct.pack("<BI", _CLOSE_STDIN, 0))
            return self._collect(stream, command, mark.encode(), marks)

    def shell_part(
        self, argv: Sequence[str], deadline_s: float, most_bytes: int, is_over: Callable[[], bool] = lambda: False
    ) -> tuple[ShellResult, str]:
        """Run one command, which is ended where it takes longer, prints more, or `is_over`; what it printed until then,
        and why it was ended (empty: it was not, and its status counts)."""
        command = quote(argv)
        printed: dict[int, bytearray] = {_STDOUT: bytearray(), _STDERR: bytearray()}
        code, why, room = 255, "", most_bytes
        with self._service(f"{_SHELL}{command}", command, deadline_s) as stream:
            try:
                with suppress(BrokenPipeError, ConnectionResetError):
                    stream.write(struct.pack("<BI", _CLOSE_STDIN, 0))
                while True:
                    if not stream.is_ready(LOOK_S):
                        if is_over():
                            why = "its host is being stopped, and it was ended"
                            break
                        continue
                    kind, size = self._header(stream, command)
                    content = stream.read_exact(min(size, 1 if kind == _EXIT else room))
                    if kind == _EXIT:
                        code = content[0] if content else 255
                        break
                    printed[kind] += content
                    room -= size
                    if room < 0:
                        why = f"it printed more than {most_bytes} bytes, which is the most that is taken, and was ended"
                        break
            except (TimeoutError, adbutils.AdbTimeout):
                if not self._answers(deadline_s):
                    raise
                why = f"it went on for {deadline_s:g} s, which is the longest that it may, and was ended"
        return ShellResult(code, *(bytes(printed[kind]) for kind in (_STDOUT, _STDERR))), why

    def stream(self, argv: Sequence[str], *, deadline_s: float = 10.0) -> Stream:
        command = quote(argv)
        with self._opened(f"{_SHELL}{command}", command, deadline_s) as opened:
            return ShellStream(opened.conn, self.serial)

    def push(self, source: Path, target: str, *, mode: int = 0o644, deadline_s: float = 120.0) -> None:
        with source.open("rb") as file, self._service("sync:", f"push {target}", deadline_s) as stream:
            try:
                stream.write(_sync(b"SEND", f"{target},{0o100000 | mode}".encode()))
                while chunk := file.read(CHUNK_BYTES):
                    checkpoint()
                    stream.write(_sync(b"DATA", chunk))
                stream.write(b"DONE" + struct.pack("<I", int(time.time())))
            except (BrokenPipeError, ConnectionResetError):
                pass  # a phone that refuses says why and closes: its reason is still to be read
            self._sync_reply(stream, f"push {target}")

    def pull(self, source: str, target: Path, *, deadline_s: float = 120.0) -> None:
        with target.open("wb") as file, self._service("sync:", f"pull {source}", deadline_s) as stream:
            stream.write(_sync(b"RECV", source.encode()))
            while (bytes_ := self._sync_reply(stream, f"pull {source}")) is not None:
                if file.tell() + bytes_ > MAX_PULLED_BYTES:
                    raise DeviceSick(
                        f"pull {source}: more than {MAX_PULLED_BYTES >> 20} MiB",
                        device=self.serial,
                        remedy=f"look at the phone's {self.folder}: no file of the farm is so long",
                    )
                file.write(stream.read_exact(bytes_))

    def reconnect(self) -> None:
        """A phone that was called and left the list is called again; USB phones, and those that the server itself
        tries again, come back by themselves."""
        if not by_call(self.address):
            return
        with suppress(ServiceDown, TransportLost):
            if all(row.address != self.address for row in self._server.devices()):
                self._server.connect(self.address)

    @contextmanager
    def _service(self, service: str, command: str, deadline_s: float) -> Iterator[AdbStream]:
        """A stream to a service of the phone, which ends with it."""
        with self._opened(service, command, deadline_s) as stream, stream:
            stream.reads_ahead = True
            yield stream

    @contextmanager
    def _opened(self, service: str, command: str, deadline_s: float) -> Iterator[AdbStream]:
        """A stream to a service; whatever breaks it is told as its cause, see `_lost`."""
        reached = taken = False
        try:
            stream = AdbStream(self._server.open, deadline_s)
            try:
                stream.request(f"host:transport:{self.address}")
                reached = True
                stream.request(service)
                taken = True
            finally:
                if not taken:
                    stream.close()
            yield stream
        except WENT_AWAY as e:
            if is_of_host(e):
                raise
            raise self._lost(e, command, deadline_s, taken, refused=reached and not taken) from e

    def _lost(self, e: Exception, command: str, deadline_s: float, taken: bool, *, refused: bool) -> Exception:
        """Return what broke a stream. `taken`: adbd had taken the service; `refused`: it may have refused it."""
        late = isinstance(e, TimeoutError | adbutils.AdbTimeout)
        what = f"no end within {deadline_s:g} s" if late else f"{e or type(e).__name__}"
        said = f"connection lost in `{command[:200]}`: {what}"
        if self._server.is_shaken:
            remedy = "look at the log of this host's adb server"
            return AdbDown(f"the adb server went away: {said}", device=self.serial, remedy=remedy)
        if late and taken and self._answers(deadline_s):
            return DeviceSlow(
                f"the phone answers, but is slow: `{command[:200]}`: {what}",
                device=self.serial,
                remedy="end what keeps the phone busy (apps, updates), or restart it",
            )
        if refused and not late and self._is_too_old():
            return Unsupported(
                "the phone is too old: its adbd has no shell v2, which came with Android 7",
                device=self.serial,
                remedy="use a phone with Android 7 or newer",
            )
        return TransportLost(said, device=self.serial, remedy="check cable, hub and phone")

    def _answers(self, deadline_s: float) -> bool:
        """Return whether adbd takes another service at once: then neither cable nor adbd is to blame."""
        try:
            with AdbStream(self._server.open, min(ANSWER_S, deadline_s)) as stream:
                stream.request(f"host:transport:{self.address}")
                stream.request(f"{_SHELL}:")
        except WENT_AWAY:
            return False
        return True

    def _is_too_old(self) -> bool:
        try:
            return "shell_v2" not in self._server.features(self.address)
        except ServiceDown:
            return False

    def _collect(self, stream: AdbStream, command: str, mark: bytes, marks: int) -> ShellResult:
        """Packets of shell v2 until the exit status; a stream that ends without one was cut. The deadline is restarted
        at each of so many marks."""
        streams: dict[int, list[bytes]] = {_STDOUT: [], _STDERR: []}
        total, tail = 0, b""
        while True:
            kind, size = self._header(stream, command, MAX_OUTPUT_BYTES - total)
            content = stream.read_exact(size)
            if kind == _EXIT:
                return ShellResult(content[0] if content else 255, *(b"".join(streams[i]) for i in (_STDOUT, _STDERR)))
            streams[kind].append(content)
            total += size
            if kind == _STDOUT and marks > 0:
                if found := (tail + content).count(mark):
                    marks -= found
                    stream.restart()
                tail = (tail + content)[1 - len(mark) :]

    def _header(self, stream: AdbStream, command: str, most_bytes: int = 1 << 32) -> tuple[int, int]:
        """Return kind and size of the next packet. Raises DeviceSick where it is none, or too long."""
        kind, size = struct.unpack("<BI", stream.read_exact(5))
        if kind not in (_STDOUT, _STDERR, _EXIT) or size > most_bytes:
            raise DeviceSick(
                f"unreadable answer to `{command[:200]}`: packet {kind} of {size} bytes",
                device=self.serial,
                remedy="restart the phone's adbd (replug it), then look at what it prints",
            )
        return kind, size

    def _sync_reply(self, stream: AdbStream, what: str) -> int | None:
        """Bytes of the DATA that follows; None after OKAY or DONE. Raises DeviceSick with the phone's reason."""
        kind, size = stream.read_exact(4), stream.read_uint32()
        if kind == b"DATA" and size <= CHUNK_BYTES:
            return int(size)
        if kind in (b"OKAY", b"DONE"):
            return None
        if kind != b"FAIL":
            raise DeviceSick(f"{what}: unreadable reply {kind!r}", device=self.serial, remedy="replug the phone")
        reason = stream.read_exact(min(size, CHUNK_BYTES)).decode(errors="replace")
        if "No space left" in reason:
            raise DeviceSick(f"storage full: {what}: {reason}", device=self.serial, remedy="free space on the phone")
        raise DeviceSick(f"{what}: {reason}", device=self.serial, remedy=f"look at the phone's {self.folder}")


def _sync(kind: bytes, content: bytes) -> bytes:
    return kind + struct.pack("<I", len(content)) + content
