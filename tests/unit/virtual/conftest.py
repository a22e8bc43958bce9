"""A virtual phone without a transport, and a way to run scripts in it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from virtual_phones.commands import COMMANDS
from virtual_phones.phone import Phone
from virtual_phones.profile import load_profile
from virtual_phones.programs.streams import BytesSink, BytesSource, Io
from virtual_phones.shell.interpreter import Shell
from virtual_phones.system.processes import ProcessTable


class Result(NamedTuple):
    """A finished script."""

    code: int
    out: str
    err: str


Sh = Callable[..., Result]


@pytest.fixture
def phone(tmp_path: Path) -> Phone:
    return Phone(load_profile("galaxy_s7"), 0, tmp_path / "phone", ProcessTable(), None)


@pytest.fixture
def sh(phone: Phone) -> Sh:
    """Run a script in a fresh shell of the phone; its exit status, output and errors."""

    def run(script: str, stdin: bytes = b"") -> Result:
        out, err = BytesSink(), BytesSink()

        async def go() -> int:
            shell = Shell(phone, COMMANDS)
            code = await shell.run(script, Io(BytesSource(stdin), out, err))
            await shell.wait_for_background()
            return code

        code = asyncio.run(go())
        return Result(code, out.data.decode(), err.data.decode())

    return run
