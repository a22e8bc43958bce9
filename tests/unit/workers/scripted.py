"""A phone of which every answer is written down: for what virtual phones do not say, in the words of real ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from workers.connection.base import ShellResult

NOT_FOUND = 127


class ScriptedPhone:
    """Implements `DeviceConnection`. Answers by the words of the command; what is not in the script is not found."""

    serial, folder = "R58M", "/data/local/tmp/pocketfarm"

    def __init__(self, answers: Mapping[str, str | tuple[int, str]], *, address: str = "R58M") -> None:
        self.address = address
        self.answers = dict(answers)
        self.asked: list[str] = []

    def shell(self, argv: Sequence[str], *, deadline_s: float = 10.0) -> ShellResult:
        command = " ".join(argv)
        self.asked.append(command)
        answer = self.answers.get(command, (NOT_FOUND, f"{argv[0]}: inaccessible or not found"))
        code, text = answer if isinstance(answer, tuple) else (0, answer)
        return ShellResult(code, text.encode() if code == 0 else b"", b"" if code == 0 else text.encode())

    def shells(
        self, commands: Sequence[Sequence[str]], *, deadline_s: float = 10.0, guard: int | None = None
    ) -> list[ShellResult]:
        found = [self.shell(command, deadline_s=deadline_s) for command in commands[:guard]]
        if guard is None or (told := self.shell(commands[guard])).code != 0:
            return found
        return [*found, told, *(self.shell(command, deadline_s=deadline_s) for command in commands[guard + 1 :])]

    def push(self, source: Path, target: str, *, mode: int = 0o644, deadline_s: float = 120.0) -> None: ...

    def pull(self, source: str, target: Path, *, deadline_s: float = 120.0) -> None: ...

    def reconnect(self) -> None: ...
