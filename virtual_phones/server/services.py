"""The services of a phone's adbd: destinations of OPEN messages to services."""

from __future__ import annotations

import asyncio
import time

from virtual_phones.adb.wire import Service, Stream
from virtual_phones.commands import COMMANDS
from virtual_phones.phone import SHELL_V2_SDK, Phone
from virtual_phones.programs.streams import Io
from virtual_phones.shell.interpreter import Shell

from .shell_protocols import RawShell, ShellV2
from .sync import SyncService


def open_service(phone: Phone, destination: str) -> Service | None:
    """The service for a destination such as `shell,v2,raw:ls`; None where there is none (tcpip, forwards, root ...)."""
    service = _service(phone, destination)
    if service is None:
        return None

    async def serve(stream: Stream) -> None:
        phone.wakefulness.stream_opened()
        try:
            await service(stream)
        finally:
            phone.wakefulness.stream_closed(time.monotonic())

    return serve


def _service(phone: Phone, destination: str) -> Service | None:
    name, _, argument = destination.partition(":")
    kind, *options = name.split(",")
    if kind == "shell" and (not options or phone.profile.sdk >= SHELL_V2_SDK):
        return _shell(phone, argument, second="v2" in options, terminal="pty" in options or "raw" not in options)
    if kind == "exec":
        return _shell(phone, argument, second=False, terminal=False)
    if kind == "sync":
        return lambda stream: SyncService(phone, stream).serve()
    if kind == "reboot":
        return lambda _stream: _reboot(phone)
    return None


def _shell(phone: Phone, script: str, *, second: bool, terminal: bool) -> Service:
    async def serve(stream: Stream) -> None:
        channel = ShellV2(stream) if second else RawShell(stream)
        io = Io(channel, channel.out, channel.err)
        shell = Shell(phone, COMMANDS)
        status = await shell.run(script, io) if script else await _interact(shell, io, echo=terminal)
        await shell.wait_for_background()
        await channel.exit(status)

    return serve


async def _interact(shell: Shell, io: Io, *, echo: bool) -> int:
    """A person at the keyboard: lines in, prompt and results out, until `exit`, Ctrl-D or the end."""
    prompt = f"{shell.phone.properties['ro.product.device']}:/ $ ".encode() if echo else b""
    line = bytearray()
    await io.out(prompt)
    while block := await io.stdin.read():
        for byte in block.replace(b"\r", b"\n"):
            if byte == 0x04 and not line:
                return shell.status
            if byte in (0x7F, 0x08):
                if line:
                    line.pop()
                    await io.out(b"\b \b" if echo else b"")
                continue
            await io.out((b"\r\n" if byte == 0x0A else bytes([byte])) if echo else b"")
            if byte != 0x0A:
                line.append(byte)
                continue
            text = line.decode(errors="replace").strip()
            line.clear()
            if text.split(" ")[0] == "exit":
                return shell.status
            await shell.run(text, _with_returns(io) if echo else io)
            await io.out(prompt)
    return shell.status


def _with_returns(io: Io) -> Io:
    """A terminal in raw mode needs carriage returns."""

    async def out(data: bytes) -> None:
        await io.out(data.replace(b"\n", b"\r\n"))

    return Io(io.stdin, out, out)


async def _reboot(phone: Phone) -> None:
    phone.reboot_requested.set()
    await asyncio.sleep(3600)
