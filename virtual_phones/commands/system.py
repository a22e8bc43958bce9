"""Commands that tell who and where: getprop, setprop, id, uname, date, nproc, free, uptime, logcat."""

from __future__ import annotations

import os
import time

from virtual_phones.shell.table import Call, CommandError, split_options

from .table import command

_IDENTITY = "uid=2000(shell) gid=2000(shell) groups=2000(shell),1003(graphics),3009(readproc) context=u:r:shell:s0"
_ROOT = "uid=0(root) gid=0(root) groups=0(root) context=u:r:magisk:s0"


@command("getprop")
async def getprop(call: Call) -> int:
    properties = call.phone.properties
    if call.arguments:
        default = call.arguments[1] if len(call.arguments) > 1 else ""
        text = properties.get(call.arguments[0], default) + "\n"
    else:
        text = "".join(f"[{name}]: [{value}]\n" for name, value in sorted(properties.items()))
    await call.io.out(text.encode())
    return 0


@command("setprop")
async def setprop(call: Call) -> int:
    if len(call.arguments) != 2:
        raise CommandError("usage: setprop NAME VALUE")
    if call.arguments[0].startswith("ro."):
        raise CommandError(f"Failed to set property '{call.arguments[0]}' to '{call.arguments[1]}'.")
    call.phone.properties[call.arguments[0]] = call.arguments[1]
    return 0


@command("id")
async def show_id(call: Call) -> int:
    options, _ = split_options(call.arguments)
    name, number, identity = ("root", "0", _ROOT) if call.shell.is_root else ("shell", "2000", _IDENTITY)
    short = name if "n" in options else number
    await call.io.out(f"{short if {'u', 'g'} & set(options) else identity}\n".encode())
    return 0


@command("whoami")
async def whoami(call: Call) -> int:
    await call.io.out(b"root\n" if call.shell.is_root else b"shell\n")
    return 0


@command("uname")
async def uname(call: Call) -> int:
    options, _ = split_options(call.arguments)
    parts = {
        "s": "Linux",
        "n": "localhost",
        "r": "4.0-virtual",
        "v": f"#1 {call.phone.profile.name}",
        "m": os.uname().machine,
    }
    shown = parts if "a" in options else {key: parts[key] for key in options or "s" if key in parts}
    await call.io.out((" ".join(shown.values()) + "\n").encode())
    return 0


@command("date")
async def date(call: Call) -> int:
    layout = next((word[1:] for word in call.arguments if word.startswith("+")), "%a %b %e %H:%M:%S UTC %Y")
    now_ns = time.time_ns()
    layout = layout.replace("%N", f"{now_ns % 1_000_000_000:09d}").replace("%s", str(now_ns // 1_000_000_000))
    await call.io.out((time.strftime(layout, time.gmtime()) + "\n").encode())
    return 0


@command("nproc")
async def nproc(call: Call) -> int:
    await call.io.out(f"{call.phone.profile.cores}\n".encode())
    return 0


@command("free")
async def free(call: Call) -> int:
    total = call.phone.profile.memory_bytes
    row = f"Mem: {total:>14} {total - total // 4:>14} {total // 4:>14}"
    await call.io.out(f"{'total':>19} {'used':>14} {'free':>14}\n{row}\n".encode())
    return 0


@command("uptime")
async def uptime(call: Call) -> int:
    minutes = int(call.phone.uptime_s() // 60)
    load = call.phone.body.load * call.phone.profile.cores
    text = f" up {minutes} min, 0 users, load average: {load:.2f}, {load:.2f}, {load:.2f}\n"
    await call.io.out(text.encode())
    return 0


@command("logcat")
async def logcat(call: Call) -> int:
    """Print the log and end, with or without `-d`. Takes `-t LINES` and filters (`TAG:LEVEL *:S`; no levels)."""
    options, filters = split_options(call.arguments, with_value="btv")
    while filters and filters[0].startswith("-"):
        more, filters = split_options(filters, with_value="btv")
        options |= more
    tags = {word.partition(":")[0] for word in filters} - {"*"} if "*:S" in filters else set()
    newest = int(options["t"]) if options.get("t", "").isdigit() else 1000
    await call.io.out("".join(f"{line}\n" for line in call.phone.log.lines(newest, tags)).encode())
    return 0
