"""Control: true, false, test, cd, pwd, export, sleep, sh, and commands that run another one in their own way."""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import Callable

from virtual_phones.programs.streams import read_all
from virtual_phones.shell.table import Call, CommandError, Session

from .table import command


@command("true", ":", "sync")
async def succeed(_call: Call) -> int:
    return 0


@command("false")
async def fail(_call: Call) -> int:
    return 1


@command("sleep", "usleep")
async def sleep(call: Call) -> int:
    await asyncio.sleep(float(call.arguments[0]))
    return 0


@command("cd")
async def cd(call: Call) -> int:
    target = call.tree.normal(call.arguments[0] if call.arguments else "/", call.shell.cwd)
    if not call.tree.host(target).is_dir():
        raise CommandError(f"{call.arguments[0]}: No such file or directory", 2)
    call.shell.cwd = target
    return 0


@command("pwd")
async def pwd(call: Call) -> int:
    await call.io.out(f"{call.shell.cwd}\n".encode())
    return 0


@command("export")
async def export(call: Call) -> int:
    for word in call.arguments:
        name, equals, value = word.partition("=")
        if equals:
            call.shell.variables[name] = value
    return 0


@command("unset")
async def unset(call: Call) -> int:
    for name in call.arguments:
        call.shell.variables.pop(name, None)
    return 0


@command("wait")
async def wait(call: Call) -> int:
    await call.shell.wait_for_background()
    return 0


@command("sh")
async def sh(call: Call) -> int:
    """`sh -c SCRIPT`, `sh FILE`, or a script as input."""
    match call.arguments:
        case ["-c", script]:
            pass
        case [path] if not path.startswith("-"):
            script = call.tree.read(path, call.shell.cwd).decode(errors="replace")
        case []:
            script = (await read_all(call.io.stdin)).decode(errors="replace")
        case _:
            raise CommandError("a virtual phone knows -c SCRIPT, FILE, or a script as input; no options, no parameters")
    return await call.shell.child().run(script, call.io)


@command("nohup", "setsid")
async def run_other(call: Call) -> int:
    return await call.shell.call(call.arguments, call.io) if call.arguments else 0


@command("nice", "taskset", "ionice", "renice")
async def run_other_elsewhere(call: Call) -> int:
    """Run another command; where and how urgently is the host's matter: numbers and options in front are skipped."""
    words = list(itertools.dropwhile(re.compile(r"-.*|(0x)?[0-9a-f]+").fullmatch, call.arguments))
    return await call.shell.call(words, call.io) if words else 0


@command("timeout")
async def timeout(call: Call) -> int:
    try:
        return await asyncio.wait_for(
            call.shell.call(call.arguments[1:], call.io), float(call.arguments[0].rstrip("s"))
        )
    except TimeoutError:
        return 124


@command("env")
async def env(call: Call) -> int:
    child = call.shell.child()
    words = list(call.arguments)
    while words and "=" in words[0]:
        name, _, value = words.pop(0).partition("=")
        child.variables[name] = value
    if words:
        return await child.call(words, call.io)
    await call.io.out("".join(f"{name}={value}\n" for name, value in child.variables.items()).encode())
    return 0


@command("test", "[")
async def test(call: Call) -> int:
    words = [word for word in call.arguments if word != "]"]
    negated = words[:1] == ["!"]
    return int(_holds(call.shell, words[negated:]) == negated)


def _holds(shell: Session, words: list[str]) -> bool:
    if len(words) <= 1:
        return bool(words and words[0])
    if len(words) == 2:
        return _holds_for_file(shell, *words)
    left, operator, right = words[:3]
    if operator in ("=", "==", "!="):
        return (left == right) != (operator == "!=")
    comparisons = {"-eq": (0,), "-ne": (-1, 1), "-lt": (-1,), "-le": (-1, 0), "-gt": (1,), "-ge": (0, 1)}
    if operator not in comparisons:
        raise CommandError(f"{operator}: unexpected operator/operand", 2)
    difference = int(left) - int(right)
    return (difference > 0) - (difference < 0) in comparisons[operator]


def _holds_for_file(shell: Session, operator: str, operand: str) -> bool:
    if operator in ("-n", "-z"):
        return bool(operand) == (operator == "-n")
    tree = shell.tree
    path = tree.host(operand, shell.cwd)
    if tree.is_closed(operand, shell.cwd):
        return operator in ("-e", "-f") or (shell.is_root and operator in ("-r", "-w", "-s"))
    if operator == "-r":
        try:
            tree.check_readable(operand, shell.cwd)
        except PermissionError:
            return False
    checks: dict[str, Callable[[], bool]] = {
        "-e": path.exists,
        "-r": path.exists,
        "-w": path.exists,
        "-f": path.is_file,
        "-d": path.is_dir,
        "-L": path.is_symlink,
        "-s": lambda: path.is_file() and path.stat().st_size > 0,
        "-x": lambda: path.is_dir() or (path.exists() and bool(path.stat().st_mode & 0o111)),
    }
    if operator not in checks:
        raise CommandError(f"{operator}: unexpected operator/operand", 2)
    return checks[operator]()
