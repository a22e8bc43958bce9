"""The way a phone's lower clock becomes real time: its processes are braked, see `brake.py`."""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

_PROGRAM = Path(__file__).with_name("brake.py")
_LEAST_SHARE = 0.02
_END_S = 5.0


class Builds:
    """The programs that processes execute, by SHA-256; each is read once."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int, int], str] = {}

    def share(self, slow: tuple[str, float] | None, pids: Iterable[int]) -> float:
        """The share of the time that is left to a phone's processes where one of them is of a slow build."""
        if slow is None:
            return 1.0
        build, share = slow
        return share if any(self._of(pid).startswith(build) for pid in pids) else 1.0

    def _of(self, pid: int) -> str:
        """Empty where the process is gone."""
        try:
            with Path(f"/proc/{pid}/exe").open("rb") as program:
                facts = os.fstat(program.fileno())
                key = facts.st_dev, facts.st_ino, facts.st_mtime_ns
                if key not in self._known:
                    self._known[key] = hashlib.file_digest(program, "sha256").hexdigest()
        except OSError:
            return ""
        return self._known[key]


class Slowing:
    """Lets processes run for a share of the time. The braking process starts when it is first needed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._said = b""
        self._braked: list[int] = []

    @property
    def pid(self) -> int | None:
        """The id of the braking process; None where none runs."""
        return self._process.pid if self._process else None

    def hold(self, share: float, pids: Iterable[int]) -> None:
        """Let these processes run for `share` of the time (0: not at all) from now on; all others run freely."""
        braked = sorted(pids) if share < 1.0 else []
        if not braked and self._process is None:
            return
        line = " ".join(map(str, (max(_LEAST_SHARE, share) if share > 0 else 0.0, *braked))).encode() + b"\n"
        if line == self._said:
            return
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(_PROGRAM)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                bufsize=0,
                start_new_session=True,
            )
        self._said, self._braked = line, braked
        assert self._process.stdin
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(line)

    def close(self) -> None:
        """Let everything run freely and end the braking process."""
        process, self._process, self._said = self._process, None, b""
        braked, self._braked = self._braked, []
        if process is None:
            return
        assert process.stdin
        process.stdin.close()
        try:
            process.wait(_END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            for pid in braked:  # it had no time to let them go
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGCONT)
