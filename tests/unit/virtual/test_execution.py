"""Programs of the phone as processes of the host: the collector of orphans must not take their exit status."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress

import pytest

from tests.waiting import LIMIT_S, eventually
from virtual_phones.commands import COMMANDS
from virtual_phones.phone import Phone
from virtual_phones.programs.execution import reap_orphans
from virtual_phones.programs.streams import BytesSink, BytesSource, Io
from virtual_phones.shell.interpreter import Shell
from virtual_phones.system.processes import _children, _state

PROGRAM = "/data/local/tmp/program"


def install(phone: Phone, script: str) -> None:
    path = phone.tree.host(PROGRAM)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    phone.pushed.note(path)


def run(phone: Phone, script: str, meanwhile: Callable[[], None]) -> int:
    """Exit status of a program; `meanwhile` is called whenever the loop comes around."""
    install(phone, script)

    async def watch() -> None:
        while True:
            meanwhile()
            await asyncio.sleep(0)

    async def go() -> int:
        watcher = asyncio.create_task(watch())
        code = await Shell(phone, COMMANDS).run(PROGRAM, Io(BytesSource(), BytesSink(), BytesSink()))
        watcher.cancel()
        with suppress(asyncio.CancelledError):
            await watcher
        return code

    return asyncio.run(go())


def test_a_program_is_known_from_its_first_moment(phone: Phone) -> None:
    before, seen = set(_children(os.getpid()) or ()), set[int]()

    def look() -> None:
        mine = set(_children(os.getpid()) or ()) - before
        assert mine <= phone.own_children
        seen.update(mine)
        reap_orphans([phone])

    assert run(phone, "sleep 0.2; exit 7", look) == 7
    assert len(seen) == 1 and not phone.own_children


def test_an_orphan_is_collected(phone: Phone) -> None:
    with subprocess.Popen([sys.executable, "-c", "raise SystemExit(7)"]) as process:
        eventually(lambda: _state(process.pid) == "Z")
        reap_orphans([phone])
        assert _state(process.pid) == ""


def test_what_a_program_reads_and_prints_passes_whole(phone: Phone, seed: int) -> None:
    """More than pipes hold, in both directions and on both outputs, while the reader is slow."""
    given = random.Random(seed).randbytes(1 << 20)
    out, err, slow = BytesSink(), BytesSink(), 0

    async def slowly(data: bytes) -> None:
        nonlocal slow
        slow += 1
        await asyncio.sleep(0.001)
        await out(data)

    install(phone, "tee /dev/stderr")
    code = asyncio.run(Shell(phone, COMMANDS).run(PROGRAM, Io(BytesSource(given), slowly, err)))
    assert code == 0 and bytes(out.data) == bytes(err.data) == given and slow > 4


@pytest.mark.parametrize("before", [signal.SIG_DFL, signal.SIG_IGN], ids=["", "under nohup"])
def test_who_is_hung_up_on_is_collected_all_the_same(phone: Phone, before: signal.Handlers) -> None:
    install(phone, "echo on; exec sleep 100")  # no trap: dash loses a signal that comes while it forks
    out = BytesSink()

    async def go() -> None:
        task = asyncio.create_task(
            Shell(phone, COMMANDS).run(PROGRAM, Io(BytesSource(b"never read"), out, BytesSink()))
        )
        while b"on" not in out.data:
            await asyncio.sleep(0.01)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        while phone.own_children:
            await asyncio.sleep(0.01)

    others = set(_children(os.getpid()) or ())
    kept = signal.signal(signal.SIGHUP, before)
    try:
        asyncio.run(asyncio.wait_for(go(), LIMIT_S))
    finally:
        signal.signal(signal.SIGHUP, kept)
    assert set(_children(os.getpid()) or ()) <= others
