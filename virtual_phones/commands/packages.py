"""Apps: pm, am and `cmd package`. Some are listed by `ps` after booting; none of them does anything."""

from __future__ import annotations

from virtual_phones.phone import BACKGROUND_APPS
from virtual_phones.shell.table import Call, CommandError

from .table import command

_SYSTEM = ("android", "com.android.phone", "com.android.settings", "com.android.shell", "com.android.systemui")
_OTHERS = tuple(BACKGROUND_APPS)


@command("pm")
async def pm(call: Call) -> int:
    if call.arguments[:2] == ["list", "packages"]:
        await call.io.out(_list(call.arguments[2:]).encode())
    elif call.arguments[:1] == ["path"]:
        if call.arguments[-1] not in _SYSTEM + _OTHERS:
            return 1
        await call.io.out(f"package:/data/app/{call.arguments[-1]}/base.apk\n".encode())
    return 0


def _list(words: list[str]) -> str:
    """`-3`: only those that the owner installed; `-s`: only the system's; a word: only names that have it."""
    names = [*([] if "-3" in words else _SYSTEM), *([] if "-s" in words else _OTHERS)]
    wanted = next((word for word in words if not word.startswith("-")), "")
    return "".join(f"package:{name}\n" for name in sorted(names) if wanted in name)


@command("am")
async def am(call: Call) -> int:
    """`kill-all`, `force-stop` and `kill` say nothing, whether or not there was anything to end."""
    if call.arguments[:1] in (["force-stop"], ["kill"]) and len(call.arguments) < 2:
        raise CommandError(f'Error: Argument expected after "{call.arguments[0]}"', 255, bare=True)
    if call.arguments[:1] == ["kill-all"]:
        call.phone.apps.clear()
    elif call.arguments[:1] in (["force-stop"], ["kill"]):
        call.phone.apps.pop(call.arguments[-1], None)
    return 0
