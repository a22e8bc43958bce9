"""Several commands in one script, and their answers told apart again by a mark that nobody else prints."""

from __future__ import annotations

from collections.abc import Sequence

from .base import ShellResult
from .quote import quote

_DIGITS = 3
"""The most digits of an exit status."""


def script(commands: Sequence[Sequence[str]], mark: str, guard: int | None = None) -> str:
    """All have an empty standard input. The mark follows each: on standard output with its exit status. Where the one
    of the number `guard` fails, nothing follows."""
    told = f"printf '{mark} %s;' $?; printf '{mark};' >&2"
    each = [f"{quote(argv)}; {told}" for argv in commands]
    if guard is not None:
        behind = "; ".join([told, *each[guard + 1 :]])
        each[guard:] = [f"{quote(commands[guard])} && {{ {behind}; }}"]
    return f"{{ {'; '.join(each)}; }} </dev/null"


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
