"""This host as a device: the same Protocol over its own shell, in a folder of its own."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from orchestrator.model.errors import DeviceSick, DeviceSlow

from .base import ShellResult
from .quote import quote
from .stream import PipeStream, Stream


class LocalConnection:
    """Implements `DeviceConnection`; `root` is made when it is first needed and belongs to this serial alone."""

    address = ""

    def __init__(self, serial: str, root: Path) -> None:
        self.serial = serial
        self.folder = str(root.absolute())

    def shell(self, argv: Sequence[str], *, deadline_s: float = 10.0) -> ShellResult:
        command = quote(argv)
        process = subprocess.Popen(
            ["/bin/sh", "-c", command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        with process:
            try:
                stdout, stderr = process.communicate(timeout=deadline_s)
            except subprocess.TimeoutExpired as e:
                os.killpg(process.pid, signal.SIGKILL)
                raise DeviceSlow(
                    f"this machine is slow: `{command[:200]}`: no end within {deadline_s:g} s",
                    device=self.serial,
                    remedy="end what keeps it busy",
                ) from e
        code = process.returncode
        return ShellResult(code if code >= 0 else 128 - code, stdout, stderr)

    def shells(
        self, commands: Sequence[Sequence[str]], *, deadline_s: float = 10.0, guard: int | None = None
    ) -> list[ShellResult]:
        found = list[ShellResult]()
        for number, command in enumerate(commands):
            answer = self.shell(command, deadline_s=deadline_s)
            if number == guard and answer.code != 0:
                break
            found.append(answer)
        return found

    def stream(self, argv: Sequence[str], *, deadline_s: float = 10.0) -> Stream:  # noqa: ARG002
        return PipeStream(quote(argv), self.serial)

    def push(self, source: Path, target: str, *, mode: int = 0o644, deadline_s: float = 120.0) -> None:  # noqa: ARG002
        path = Path(target)
        self._copy(source, path, f"push {target}")
        path.chmod(mode & 0o700)

    def pull(self, source: str, target: Path, *, deadline_s: float = 120.0) -> None:  # noqa: ARG002
        self._copy(Path(source), target, f"pull {source}")

    def reconnect(self) -> None: ...

    def _copy(self, source: Path, target: Path, what: str) -> None:
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
        except OSError as e:
            if e.errno == errno.ENOSPC:
                raise DeviceSick(f"storage full: {what}: {e}", device=self.serial, remedy="free space") from e
            raise DeviceSick(f"{what}: {e}", device=self.serial, remedy=f"look at {self.folder}") from e
