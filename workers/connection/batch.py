"""Several commands in one script, and their answers told apart again by a mark that nobody else prints."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .base import ShellResult
from .quote import quote


def script(commands: Sequence[Sequence[str]], mark: str) -> str:
    """Each command has an empty standard input. The mark follows it: on standard output with its exit status."""
    return "; ".join(
        f"{quote(argv)} </dev/null; printf '%s %s;' {mark} $?; printf '%s;' {mark} >&2" for argv in commands
    )


def split(done: ShellResult, mark: str) -> list[ShellResult]:
    """The answers of those commands that ended."""
    told = re.split(rb"%s (\d{1,3});" % mark.encode(), done.stdout)
    errors = done.stderr.split(b"%s;" % mark.encode())
    ended = zip(told[1::2], told[0::2], errors[:-1], strict=False)
    return [ShellResult(int(code), stdout, stderr) for code, stdout, stderr in ended]
