"""The `sync:` service: file transfer, versions 1 and 2, without compression (AOSP, file_sync_service.h)."""

from __future__ import annotations

import errno
import os
import stat as modes
import struct
from collections.abc import Callable
from pathlib import Path

from virtual_phones.adb.wire import Stream, StreamClosed
from virtual_phones.phone import Phone
from virtual_phones.system.garbage import Garbler
from virtual_phones.system.tree import refusal

_REQUEST = struct.Struct("<4sI")
_STAT_1 = struct.Struct("<4sIII")
_STAT_2 = struct.Struct("<4sIQQIIIIQqqq")
_ENTRY_1 = struct.Struct("<4sIIII")
_ENTRY_2 = struct.Struct("<4sIQQIIIIQqqqI")
_DATA_LIMIT = 64 * 1024
_SHELL_ID = 2000
_PATH_LIMIT = 1024


class _Inbox:
    """Exact reads from a stream of blocks."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._buffer = bytearray()
        self._start = 0

    async def take(self, size: int) -> bytes:
        """The next `size` bytes. Raises StreamClosed at the end."""
        while len(self._buffer) - self._start < size:
            block = await self._stream.read()
            if not block:
                raise StreamClosed
            if self._start:
                del self._buffer[: self._start]
                self._start = 0
            self._buffer += block
        self._start += size
        return bytes(memoryview(self._buffer)[self._start - size : self._start])


class SyncService:
    """One `sync:` stream of a phone."""

    def __init__(self, phone: Phone, stream: Stream) -> None:
        self._phone = phone
        self._stream = stream
        self._inbox = _Inbox(stream)

    async def serve(self) -> None:
        """Answer requests until QUIT or the end of the stream."""
        while True:
            kind, length = _REQUEST.unpack(await self._inbox.take(_REQUEST.size))
            if kind == b"QUIT":
                return
            if length > _PATH_LIMIT:
                await self._fail(f"path of {length} bytes is too long")
                return
            path = (await self._inbox.take(length)).decode("utf-8", "surrogateescape")
            if not await self._answer(kind, path):
                return

    async def _answer(self, kind: bytes, path: str) -> bool:
        """Answer a request; return whether the stream is still of use."""
        if kind in (b"STAT", b"STA2", b"LST2"):
            await self._stream.write(self._stat(kind, path))
        elif kind in (b"LIST", b"LIS2"):
            await self._list(kind, path)
        elif kind == b"SEND":
            name, _, mode = path.rpartition(",")
            await self._receive(name, int(mode) if mode.isdigit() else modes.S_IFREG | 0o644)
        elif kind == b"SND2":
            mode, flags = struct.unpack("<4xII", await self._inbox.take(12))
            return await self._plain(flags) and await self._receive(path, mode)
        elif kind == b"RECV":
            await self._send(path)
        elif kind == b"RCV2":
            (flags,) = struct.unpack("<4xI", await self._inbox.take(8))
            return await self._plain(flags) and await self._send(path)
        else:
            await self._fail(f"unknown command {kind!r}")
            return False
        return True

    async def _plain(self, flags: int) -> bool:
        if flags:
            await self._fail(f"unsupported flags {flags:#x}: no compression was offered")
        return not flags

    async def _fail(self, reason: str) -> None:
        data = reason.encode()
        await self._stream.write(_REQUEST.pack(b"FAIL", len(data)) + data)

    # stat and list -------------------------------------------------------------

    def _facts(self, path: str, *, follow: bool) -> os.stat_result:
        host = self._phone.tree.host(path)
        try:
            return host.stat() if follow else host.lstat()
        except OSError as error:
            raise refusal(error.errno or errno.EIO, path) from error

    def _stat(self, kind: bytes, path: str) -> bytes:
        try:
            facts = self._facts(path, follow=kind == b"STA2")
        except OSError as error:
            empty = (0,) * 10
            return _STAT_1.pack(kind, 0, 0, 0) if kind == b"STAT" else _STAT_2.pack(kind, error.errno or 5, *empty)
        if kind == b"STAT":
            return _STAT_1.pack(kind, facts.st_mode, facts.st_size & 0xFFFFFFFF, int(facts.st_mtime) & 0xFFFFFFFF)
        return _STAT_2.pack(kind, 0, *_fields_2(facts))

    async def _list(self, kind: bytes, path: str) -> None:
        try:
            host = self._phone.tree.host(path)
            names = sorted(path.name for path in host.iterdir())
        except OSError:  # a folder that cannot be read is an empty list, as adbd has it
            names = []
        pack = _pack_entry_1 if kind == b"LIST" else _pack_entry_2
        entries = b"".join(_entry(pack, host / name, name) for name in [".", "..", *names]) if names else b""
        done = _ENTRY_1.pack(b"DONE", 0, 0, 0, 0) if kind == b"LIST" else _ENTRY_2.pack(b"DONE", *(0,) * 12)
        await self._stream.write(entries + done)

    # transfers -----------------------------------------------------------------

    async def _receive(self, path: str, mode: int) -> bool:
        """Take a file or a symbolic link from the host; after a failure the rest is read and dropped."""
        try:
            target = self._prepared(path)
            failure = None
        except OSError as error:
            failure = error
            await self._fail(f"couldn't create file: {error.strerror}")
        if failure is None and modes.S_ISLNK(mode):
            await self._link(target)
        elif failure is None:
            failure = await self._fill(path, target, mode)
            if failure:
                target.unlink(missing_ok=True)
                await self._fail(f"write failed: {failure.strerror}")
        if failure:
            await self._drain()
        return True

    def _prepared(self, path: str) -> Path:
        tree = self._phone.tree
        tree.check_writable(path)
        target = tree.host(path)
        if target.is_dir():
            raise refusal(errno.EISDIR, path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        return target

    async def _fill(self, path: str, target: Path, mode: int) -> OSError | None:
        """Write what the host sends; None, or why it failed before all was read."""
        room = self._phone.tree.free_bytes()
        try:
            with target.open("wb") as file:
                while (block := await self._block()) is not None:
                    if isinstance(block, int):
                        mtime = block
                        break
                    room -= len(block)
                    if room < 0 or self._phone.tree.full:
                        return refusal(errno.ENOSPC, path)
                    file.write(block)
        except OSError as error:
            return error
        self._phone.pushed.note(target)
        target.chmod(mode & 0o777)
        os.utime(target, (mtime, mtime))
        await self._stream.write(_REQUEST.pack(b"OKAY", 0))
        return None

    async def _link(self, target: Path) -> None:
        pieces = []
        while not isinstance(block := await self._block(), int):
            pieces.append(block)
        name = b"".join(pieces).rstrip(b"\0").decode("utf-8", "surrogateescape")
        try:
            self._phone.tree.link(target, name)
        except OSError as error:
            await self._fail(f"symlink failed: {error.strerror}")
            return
        await self._stream.write(_REQUEST.pack(b"OKAY", 0))

    async def _block(self) -> bytes | int:
        """The next DATA block, or DONE's modification time."""
        kind, length = _REQUEST.unpack(await self._inbox.take(_REQUEST.size))
        if kind == b"DONE":
            return int(length)
        if kind != b"DATA" or length > _DATA_LIMIT:
            await self._fail(f"bad block {kind!r} of {length} bytes")
            raise StreamClosed
        return await self._inbox.take(length)

    async def _drain(self) -> None:
        while not isinstance(await self._block(), int):
            pass

    async def _send(self, path: str) -> bool:
        try:
            data = self._phone.tree.read(path)
        except OSError as error:
            await self._fail(f"open failed: {error.strerror}")
            return True
        if self._phone.garbled and self._phone.tree.normal(path) in self._phone.journals:
            data = Garbler().spoil(data)
        group = 8 * _DATA_LIMIT
        for start in range(0, len(data), group):
            pieces = range(start, min(len(data), start + group), _DATA_LIMIT)
            blocks = [data[piece : piece + _DATA_LIMIT] for piece in pieces]
            await self._stream.write(b"".join(_REQUEST.pack(b"DATA", len(block)) + block for block in blocks))
        await self._stream.write(_REQUEST.pack(b"DONE", 0))
        return True


def _fields_2(facts: os.stat_result) -> tuple[int, ...]:
    times = (int(facts.st_atime), int(facts.st_mtime), int(facts.st_ctime))
    return (facts.st_dev, facts.st_ino, facts.st_mode, facts.st_nlink, _SHELL_ID, _SHELL_ID, facts.st_size, *times)


def _pack_entry_1(facts: os.stat_result, length: int) -> bytes:
    return _ENTRY_1.pack(b"DENT", facts.st_mode, facts.st_size & 0xFFFFFFFF, int(facts.st_mtime), length)


def _pack_entry_2(facts: os.stat_result, length: int) -> bytes:
    return _ENTRY_2.pack(b"DNT2", 0, *_fields_2(facts), length)


def _entry(pack: Callable[[os.stat_result, int], bytes], host: Path, name: str) -> bytes:
    try:
        facts = host.lstat()
    except OSError:  # removed meanwhile
        return b""
    data = os.fsencode(name)
    return pack(facts, len(data)) + data
