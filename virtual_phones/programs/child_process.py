"""A program of the host as a child of this process: its streams are those of a command, nothing waits in a thread.

It is known from its first moment: it starts while nothing else runs here. asyncio's own has transports, readers and a
task for each pipe, which takes half as much again.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from .streams import Sink, Source

_BLOCK = 1 << 16


def _let_programs_hear_hang_ups() -> None:
    """Handle SIGHUP where it is ignored, as under nohup: a program would inherit that, and adbd's have the default."""
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGHUP, lambda *_: None)  # this process goes on, and what it starts has the default


class ChildProcess:
    """Starts at once. Raises OSError where it cannot."""

    def __init__(
        self,
        words: Sequence[str],
        *,
        program: Path,
        folder: Path,
        environment: dict[str, str],
        has_input: bool,
        at_end: Callable[[int], object],
    ) -> None:
        """`has_input`: it is fed, or else its input is empty. `at_end` is called with its pid once it was collected,
        whether or not anybody attends to it still."""
        _let_programs_hear_hang_ups()
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            words,
            executable=program,
            stdin=pipe if has_input else subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
            cwd=folder,
            env=environment,
            start_new_session=True,
            restore_signals=False,  # SIGXFSZ stays ignored, so that a full storage is an error and no death
            bufsize=0,
        )
        self.pid, self._at_end = self._process.pid, at_end
        self._loop = asyncio.get_running_loop()
        self._code: asyncio.Future[int] = self._loop.create_future()
        self._handle = os.pidfd_open(self.pid)
        self._loop.add_reader(self._handle, self._collect)

    def _collect(self) -> None:
        self._loop.remove_reader(self._handle)
        os.close(self._handle)
        self._at_end(self.pid)
        code = self._process.wait()
        if not self._code.done():
            self._code.set_result(code)

    async def attend(self, source: Source, out: Sink, err: Sink) -> int:
        """Feed it and pass on what it prints, until its outputs are closed and it has ended: its exit status, negative
        where a signal ended it. Afterwards, also where this is cancelled, nobody reads from it."""
        process = self._process
        assert process.stdout and process.stderr
        feeder = asyncio.create_task(_feed(source, process.stdin)) if process.stdin else None
        try:
            await asyncio.gather(_drain(process.stdout, out), _drain(process.stderr, err))
            return await asyncio.shield(self._code)
        finally:
            if feeder:
                feeder.cancel()
            for stream in filter(None, (process.stdin, process.stdout, process.stderr)):
                stream.close()

    def signal(self, number: int) -> None:
        """Send a signal to this process alone, if it is there."""
        with suppress(ProcessLookupError):
            self._process.send_signal(number)


async def _drain(pipe: Any, sink: Sink) -> None:
    os.set_blocking(pipe.fileno(), False)
    loop = asyncio.get_running_loop()
    while True:
        try:
            data = os.read(pipe.fileno(), _BLOCK)
        except BlockingIOError:
            await _ready(pipe.fileno(), loop.add_reader, loop.remove_reader)
            continue
        if not data:
            return
        await sink(data)


async def _feed(source: Source, pipe: Any) -> None:
    os.set_blocking(pipe.fileno(), False)
    loop = asyncio.get_running_loop()
    with suppress(BrokenPipeError):
        while data := await source.read():
            while data:
                try:
                    data = data[os.write(pipe.fileno(), data) :]
                except BlockingIOError:
                    await _ready(pipe.fileno(), loop.add_writer, loop.remove_writer)
    pipe.close()


async def _ready(fd: int, add: Callable[..., object], remove: Callable[[int], object]) -> None:
    """Wait until something can be read from, or written to, a descriptor."""
    found = asyncio.get_running_loop().create_future()
    add(fd, lambda: None if found.done() else found.set_result(None))
    try:
        await found
    finally:
        remove(fd)
