"""su, on phones whose profile has it: `su -c SCRIPT`, `su 0 COMMAND ...`, `su root -c SCRIPT`, or a script as input."""

from __future__ import annotations

import shlex

from virtual_phones.programs.streams import read_all
from virtual_phones.shell.table import Call, CommandError

from .table import command


@command("su", needs=lambda phone: phone.profile.root)
async def su(call: Call) -> int:
    return await call.shell.as_root().run(await _script(call), call.io)


async def _script(call: Call) -> str:
    words = call.arguments[1:] if call.arguments[:1] in (["0"], ["root"]) else call.arguments
    if words[:1] == ["-c"] and len(words) > 1:
        return " ".join(words[1:])
    if words and words[0].startswith("-"):
        raise CommandError(f"invalid option {words[0]}")
    return shlex.join(words) if words else (await read_all(call.io.stdin)).decode(errors="replace")
