"""Programs of the phone as processes of the host: the collector of orphans must not take their exit status."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress

from device_agent.virtual.execution import reap_orphans
from device_agent.virtual.phone import Phone
from device_agent.virtual.processes import _children, _state
from device_agent.virtual.shell import Shell
from device_agent.virtual.shell_io import BytesSink, BytesSource, Io
from tests.waiting import eventually

PROGRAM = "/data/local/tmp/program"


def run(phone: Phone, script: str, meanwhile: Callable[[], None]) -> int:
    """Exit status of a program; `meanwhile` is called whenever the loop comes around."""
    path = phone.tree.host(PROGRAM)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    phone.pushed.note(path)

    async def watch() -> None:
        while True:
            meanwhile()
            await asyncio.sleep(0)

    async def go() -> int:
        watcher = asyncio.create_task(watch())
        code = await Shell(phone).run(PROGRAM, Io(BytesSource(), BytesSink(), BytesSink()))
        watcher.cancel()
        with suppress(asyncio.CancelledError):
            await watcher
        return code

    return asyncio.run(go())


def test_a_program_is_known_from_its_first_moment(phone: Phone) -> None:
    before, seen = set(_children(os.getpid()) or ()), []

    def look() -> None:
        for pid in set(_children(os.getpid()) or ()) - before:
            assert phone.starting or pid in phone.own_children
            seen.append(phone.starting)
        reap_orphans([phone])

    assert run(phone, "sleep 0.2; exit 7", look) == 7
    assert seen and max(seen) == 1, "it was seen while it started"
    assert phone.starting == 0 and not phone.own_children


def test_nothing_is_collected_while_a_program_starts(phone: Phone) -> None:
    with subprocess.Popen([sys.executable, "-c", "raise SystemExit(7)"]) as process:
        eventually(lambda: _state(process.pid) == "Z")
        phone.starting = 1
        reap_orphans([phone])
        assert _state(process.pid) == "Z"
        phone.starting = 0
        reap_orphans([phone])
        assert _state(process.pid) == "", "an orphan is"
