"""Ask a device several things in one round trip, before those come that want to know them one by one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .base import DeviceConnection, ShellResult
from .stream import Stream


class Ahead:
    """Implements `DeviceConnection` over another one. An answer is given once, to whoever asks next in the very same
    words; any other command may change the rest, so it forgets them all. For one thread."""

    def __init__(self, connection: DeviceConnection) -> None:
        self.serial, self.address, self.folder = connection.serial, connection.address, connection.folder
        self._connection = connection
        self._answers: dict[tuple[str, ...], ShellResult] = {}
        self._deferred: list[Sequence[str]] = []

    def ask(self, commands: Sequence[Sequence[str]], *, deadline_s: float = 30.0) -> None:
        """Run these commands now, one after the other."""
        told = self._asked(commands, deadline_s)
        self._answers = {tuple(command): answer for command, answer in zip(commands, told, strict=True)}

    def defer(self, commands: Sequence[Sequence[str]]) -> None:
        """Run these in front of what is asked next; nobody is told how they went."""
        self._deferred += commands

    def settle(self) -> None:
        """Run what was deferred, if it was not."""
        if self._deferred:
            self._asked([], 30.0)

    def has(self, commands: Sequence[Sequence[str]]) -> bool:
        """Return whether all of these have answers that nobody has taken."""
        return all(tuple(command) in self._answers for command in commands)

    def shell(self, argv: Sequence[str], *, deadline_s: float = 10.0) -> ShellResult:
        known = self._known([argv])
        if known or not self._deferred:
            return known[0] if known else self._connection.shell(argv, deadline_s=deadline_s)
        return self._asked([argv], deadline_s)[0]

    def shells(
        self, commands: Sequence[Sequence[str]], *, deadline_s: float = 10.0, guard: int | None = None
    ) -> list[ShellResult]:
        """Run commands in one trip; what is answered behind a guard is kept, as after `ask`."""
        if guard is None:
            return self._known(commands) or self._asked(commands, deadline_s)
        told = self._asked(commands, deadline_s, guard)
        behind = zip(commands[guard + 1 :], told[guard + 1 :], strict=False)
        self._answers = {tuple(command): answer for command, answer in behind}
        return told

    def stream(self, argv: Sequence[str], *, deadline_s: float = 10.0) -> Stream:
        self._answers = {}
        return self._connection.stream(argv, deadline_s=deadline_s)

    def push(self, source: Path, target: str, *, mode: int = 0o644, deadline_s: float = 120.0) -> None:
        self._answers = {}
        self._connection.push(source, target, mode=mode, deadline_s=deadline_s)

    def pull(self, source: str, target: Path, *, deadline_s: float = 120.0) -> None:
        self._connection.pull(source, target, deadline_s=deadline_s)

    def reconnect(self) -> None:
        self._connection.reconnect()

    def _asked(
        self, commands: Sequence[Sequence[str]], deadline_s: float, guard: int | None = None
    ) -> list[ShellResult]:
        self._answers = {}
        first = self._deferred
        behind = None if guard is None else len(first) + guard
        told = self._connection.shells([*first, *commands], deadline_s=deadline_s, guard=behind)
        self._deferred = []
        return told[len(first) :]

    def _known(self, commands: Sequence[Sequence[str]]) -> list[ShellResult]:
        """The answers, where all of them are known."""
        words = [tuple(command) for command in commands]
        if len(set(words)) < len(words) or not all(word in self._answers for word in words):
            self._answers = {}
            return []
        return [self._answers.pop(word) for word in words]
