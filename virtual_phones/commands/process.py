"""Processes inside the phone: ps, pidof, pgrep, pkill, kill. Their pids are the host's."""

from __future__ import annotations

import contextlib
import re
import signal
from pathlib import Path

from virtual_phones.shell.releases import since
from virtual_phones.shell.table import Call, CommandError, Session, split_options
from virtual_phones.system.processes import Process, send_signal

from .table import command


def _running(shell: Session) -> list[Process]:
    return shell.phone.table.of(shell.phone.tree.root)


def _command_line(process: Process) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process.pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    return process.name


def _name(process: Process) -> str:
    """The executable's name; /proc cuts it after 15 letters."""
    return Path(_command_line(process).partition(" ")[0]).name or process.name


@command("ps")
async def ps(call: Call) -> int:
    if call.phone.profile.sdk < since("ps", "-o"):
        return await _toolbox_ps(call)
    processes = _running(call.shell)
    columns = call.arguments[call.arguments.index("-o") + 1] if "-o" in call.arguments[:-1] else ""
    if columns:
        names = [name.partition("=")[0].upper() for name in columns.split(",")]
        rows = [[_field(process, name) for name in names] for process in processes]
        rows += [[_app_field(app, pid, name) for name in names] for app, pid in call.phone.apps.items()]
        heads = [] if columns.endswith("=") else [names]
        await call.io.out("".join(" ".join(row) + "\n" for row in [*heads, *rows]).encode())
        return 0
    await call.io.out(b"USER           PID  PPID     VSZ    RSS WCHAN            ADDR S NAME\n")
    for process in processes:
        row = f"shell {process.pid:>12} {1:>5} {0:>7} {0:>6} 0 {0:>19} S {_name(process)}\n"
        await call.io.out(row.encode())
    for app, pid in call.phone.apps.items():
        row = f"{_app_field(app, pid, 'USER')} {pid:>11} {1:>5} {0:>7} {0:>6} 0 {0:>19} S {app}\n"
        await call.io.out(row.encode())
    return 0


async def _toolbox_ps(call: Call) -> int:
    """Android 7's, which knows no columns: the last word that is no option of its own is the beginning of a name."""
    words = [word for word in call.arguments if word not in ("-t", "-n", "-x", "-Z", "-P", "-p", "-c", "--abi")]
    name = words[-1] if words else ""
    await call.io.out(b"USER     PID   PPID  VSIZE  RSS   WCHAN    PC        NAME\n")
    rows = [("shell", process.pid, _name(process)) for process in _running(call.shell)]
    rows += [(_app_field(app, pid, "USER"), pid, app) for app, pid in call.phone.apps.items()]
    lines = [f"{user:<9} {pid:<5} 1     0      0     00000000 00000000 S {own}\n" for user, pid, own in rows]
    shown = (line for line, (_, _, own) in zip(lines, rows, strict=True) if own.startswith(name))
    await call.io.out("".join(shown).encode())
    return 0


def _app_field(app: str, pid: int, column: str) -> str:
    return {"PID": str(pid), "USER": f"u0_a{pid % 1000}"}.get(column, app)


def _field(process: Process, column: str) -> str:
    values = {
        "PID": str(process.pid),
        "USER": "shell",
        "ARGS": _command_line(process),
        "CMDLINE": _command_line(process),
    }
    return values.get(column, _name(process))


@command("pidof")
async def pidof(call: Call) -> int:
    found = [str(process.pid) for process in _running(call.shell) if _name(process) in call.arguments]
    found += [str(call.phone.adbd_pid)] if "adbd" in call.arguments else []
    if found:
        await call.io.out((" ".join(found) + "\n").encode())
    return int(not found)


def _matching(shell: Session, pattern: str, *, whole: bool) -> list[Process]:
    wanted = re.compile(pattern)
    return [
        process for process in _running(shell) if wanted.search(_command_line(process) if whole else _name(process))
    ]


@command("pgrep")
async def pgrep(call: Call) -> int:
    options, rest = split_options(call.arguments)
    found = _matching(call.shell, rest[0], whole="f" in options)
    await call.io.out("".join(f"{process.pid}\n" for process in found).encode())
    return int(not found)


@command("pkill", "killall")
async def pkill(call: Call) -> int:
    number, words = _signal(call.arguments)
    options, rest = split_options(words)
    return int(not send_signal(_matching(call.shell, rest[0], whole="f" in options), number))


@command("kill")
async def kill(call: Call) -> int:
    number, pids = _signal(call.arguments)
    running = {str(process.pid): process for process in _running(call.shell)}
    status = 0
    for pid in pids:
        if pid.isdigit() and (service := call.phone.services.get(int(pid))):
            if number:
                service.cancel()
        elif pid not in running:
            await call.io.err(f"/system/bin/sh: kill: {pid}: No such process\n".encode())
            status = 1
        elif number:
            send_signal([running[pid]], number)
    return status


def _signal(arguments: list[str]) -> tuple[int, list[str]]:
    """The signal's number (0: only ask) and the other words."""
    words = list(arguments)
    name = "TERM"
    if words[:1] == ["-s"]:
        name, words = words[1], words[2:]
    elif words and re.fullmatch(r"-(\d+|[A-Z]+\d?)", words[0]) and words[0] != "-f":
        name = words.pop(0)[1:]
    if name.isdigit():
        return int(name), words
    try:
        return signal.Signals[f"SIG{name.removeprefix('SIG')}"].value, words
    except KeyError as error:
        raise CommandError(f"bad signal '{name}'") from error
