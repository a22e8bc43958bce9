"""The table of a shell's commands, and the session as a command knows it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from virtual_phones.phone import Phone
from virtual_phones.programs.streams import Io
from virtual_phones.system.tree import Tree

from .releases import since, whose


class Session(Protocol):
    """A shell session: a working folder, variables and the status of the last command."""

    phone: Phone
    commands: Table
    is_root: bool
    tree: Tree
    cwd: str
    status: int
    variables: dict[str, str]

    async def run(self, script: str, io: Io) -> int:
        """Run a script to its end; its exit status."""
        ...

    async def call(self, argv: Sequence[str], io: Io) -> int:
        """Run one command by its words; its exit status."""
        ...

    async def wait_for_background(self) -> None:
        """Wait until nobody holds the session's output, as a real phone's adbd does before it closes the stream."""
        ...

    def child(self) -> Session:
        """Return a subshell: what it changes stays with it."""
        ...

    def as_root(self) -> Session:
        """Return what `su` starts: root's shell in the same folder."""
        ...


@dataclass(frozen=True, slots=True)
class Call:
    """One use of a command."""

    shell: Session
    arguments: list[str]
    io: Io

    @property
    def phone(self) -> Phone:
        return self.shell.phone

    def has(self, command: str, use: str) -> bool:
        """Tell whether the phone's release has a sub-command."""
        return self.phone.profile.sdk >= since(command, use)

    @property
    def tree(self) -> Tree:
        """The phone's files, with the rights of this shell's user."""
        return self.shell.tree


Handler = Callable[[Call], Awaitable[int]]
"""Returns the exit status. OSErrors and CommandErrors become messages on standard error."""

CANNOT_RUN, NOT_FOUND = 126, 127
_FOLDER = "/system/bin/"
_INACCESSIBLE_SDK = 26
"""The first SDK whose shell says `inaccessible or not found`, before `not found`."""


class ShellExit(Exception):
    """The shell ends: `exit` or `exec` was called."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class CommandError(Exception):
    """A command failed; the text follows its name on standard error, or stands there `bare`."""

    def __init__(self, message: str, status: int = 1, *, bare: bool = False) -> None:
        super().__init__(message)
        self.status = status
        self.bare = bare


class Table:
    """Commands by name, for the phones that have them."""

    def __init__(self) -> None:
        self.handlers: dict[str, Handler] = {}
        self._needs: dict[str, Callable[[Phone], bool]] = {}
        """Commands that not every phone has, and which phones have them."""

    def command(self, *names: str, needs: Callable[[Phone], bool] | None = None) -> Callable[[Handler], Handler]:
        """Enter a handler under its names, for the phones that `needs` accepts."""

        def enter(handler: Handler) -> Handler:
            self.handlers.update(dict.fromkeys(names, handler))
            if needs:
                self._needs.update(dict.fromkeys(names, needs))
            return handler

        return enter

    def find(self, phone: Phone, name: str) -> Handler | None:
        """Return the handler of a name or of its path; None where this phone has none."""
        bare = name.removeprefix(_FOLDER)
        needed = self._needs.get(bare)
        return self.handlers.get(bare) if _has(phone, bare) and (needed is None or needed(phone)) else None

    def lack_of(self, phone: Phone, name: str) -> CommandError | None:
        """Return why a name that real phones of its release know does not work; None where it does or is nobody's."""
        bare = name.removeprefix(_FOLDER)
        source = "" if bare in self.handlers or not _has(phone, bare) else whose(bare)
        if not source:
            return None
        return CommandError(
            f"/system/bin/sh: {name}: a virtual phone lacks this command; real phones have it from {source}",
            CANNOT_RUN,
            bare=True,
        )


def _has(phone: Phone, name: str) -> bool:
    """Tell whether a phone of this release has the command, and this one does not lack it."""
    return name not in phone.lacking and (not whose(name) or since(name) <= phone.profile.sdk)


def absence(phone: Phone, name: str) -> tuple[int, str]:
    """Exit status and words of the shell for a command that the phone has not got, or may not run."""
    status = phone.lacking.get(name.removeprefix(_FOLDER), NOT_FOUND)
    if status == CANNOT_RUN:
        return status, "can't execute: Permission denied"
    return status, "not found" if phone.profile.sdk < _INACCESSIBLE_SDK else "inaccessible or not found"


def split_options(arguments: list[str], *, with_value: str = "") -> tuple[dict[str, str], list[str]]:
    """Single-letter options (those in `with_value` take one) and the rest, as toybox reads them."""
    options: dict[str, str] = {}
    rest = list(arguments)
    while rest and rest[0].startswith("-") and len(rest[0]) > 1:
        word = rest.pop(0)
        if word == "--":
            break
        for position, letter in enumerate(word[1:], start=1):
            if letter in with_value:
                options[letter] = word[position + 1 :] or (rest.pop(0) if rest else "")
                break
            options[letter] = ""
    return options, rest
