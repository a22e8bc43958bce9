"""Several commands in one script, and their answers told apart again by a mark that nobody else prints."""

from __future__ import annotations

from collections.abc import Sequence

from .base import ShellResult
from .quote import quote

_DIGITS = 3
"""Of an exit status, at most."""


def script(commands: Sequence[Sequence[str]], mark: str, guard: int | None = None) -> str:
    """Each command has an empty standard input. The mark follows it: on standard output with its exit status. Where the
    one of the number `guard` fails, nothing follows."""
    told = f"printf '{mark} %s;' $?; printf '{mark};' >&2"
    words = [f"{quote(argv)} </dev/null" for argv in commands]
    if guard is None:
        return "; ".join(f"{each}; {told}" for each in words)
    before, behind = words[:guard], words[guard + 1 :]
    guarded = "; ".join([told, *(f"{each}; {told}" for each in behind)])
    return "; ".join([*(f"{each}; {told}" for each in before), f"{words[guard]} && {{ {guarded}; }}"])


def split(done: ShellResult, mark: str) -> list[ShellResult]:
    """The answers of those commands that ended."""
    errors = done.stderr.split(f"{mark};".encode())
    stdout, *rest = done.stdout.split(f"{mark} ".encode())
    found = []
    for each, stderr in zip(rest, errors[:-1], strict=False):
        code, told, behind = each.partition(b";")
        if not (told and code.isdigit() and len(code) <= _DIGITS):
            break
        found.append(ShellResult(int(code), stdout, stderr))
        stdout = behind
    return found
