"""Names: command, type, which, toybox, exec. What a real phone has and a virtual phone lacks is said so."""

from __future__ import annotations

from collections.abc import Sequence

from virtual_phones.programs.execution import find_executable
from virtual_phones.shell.releases import MKSH
from virtual_phones.shell.table import CANNOT_RUN, NOT_FOUND, Call, CommandError, ShellExit, split_options

from .table import command


def _place(call: Call, name: str) -> str:
    """A builtin's name, or the path of a command; empty where no phone has it. Raises CommandError where real phones
    have it and virtual ones do not."""
    bare = name.removeprefix("/system/bin/")
    may_not_run = call.phone.lacking.get(bare) == CANNOT_RUN
    if may_not_run or call.shell.commands.find(call.phone, name):
        return bare if name in MKSH else f"/system/bin/{bare}"
    try:
        find_executable(call.phone, name, call.shell.cwd)
    except OSError:
        if lack := call.shell.commands.lack_of(call.phone, name):
            raise lack from None
        return ""
    return name


@command("command")
async def run_command(call: Call) -> int:
    options, words = split_options(call.arguments)
    if "V" in options:
        return await _describe(call, words)
    if "v" not in options:
        return await call.shell.call(words, call.io) if words else 0
    places = [_place(call, name) for name in words]
    await call.io.out("".join(f"{place}\n" for place in places if place).encode())
    return 0 if all(places) else NOT_FOUND


@command("type", "whence")
async def describe(call: Call) -> int:
    return await _describe(call, call.arguments)


async def _describe(call: Call, names: Sequence[str]) -> int:
    places = {name: _place(call, name) for name in names}
    for name, place in places.items():
        what = "not found" if not place else f"is {place}" if "/" in place else "is a shell builtin"
        await call.io.out(f"{name} {what}\n".encode())
    return 0 if all(places.values()) else NOT_FOUND


@command("which")
async def which(call: Call) -> int:
    """Paths only: a builtin of the shell has none."""
    places = [_place(call, name) for name in split_options(call.arguments)[1]]
    await call.io.out("".join(f"{place}\n" for place in places if "/" in place).encode())
    return 0 if all("/" in place for place in places) else 1


@command("toybox")
async def toybox(call: Call) -> int:
    if not call.arguments:
        raise CommandError("needs a command on a virtual phone")
    return await call.shell.call(call.arguments, call.io)


@command("exec")
async def replace_shell(call: Call) -> int:
    """The shell ends with the command."""
    if not call.arguments:
        return 0
    raise ShellExit(await call.shell.call(call.arguments, call.io))


@command("exit")
async def leave_shell(call: Call) -> int:
    status = call.arguments[0] if call.arguments else ""
    raise ShellExit(int(status) if status.isdigit() else call.shell.status)
