"""How a phone's lower clock becomes real time: its processes are braked, see `brake.py`."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

_PROGRAM = Path(__file__).with_name("brake.py")
_LEAST_SHARE = 0.02
_END_S = 5.0


class Slowing:
    """Lets processes run for a share of the time. The braking process starts when it is first needed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._said = b""
        self._braked: list[int] = []

    @property
    def pid(self) -> int | None:
        """Of the braking process; None where none runs."""
        return self._process.pid if self._process else None

    def hold(self, share: float, pids: Iterable[int]) -> None:
        """From now on these processes run for `share` of the time (0: not at all); all others of before run freely."""
        braked = sorted(pids) if share < 1.0 else []
        if not braked and self._process is None:
            return
        line = " ".join(map(str, (max(_LEAST_SHARE, share) if share > 0 else 0.0, *braked))).encode() + b"\n"
        if line == self._said:
            return
        if self._process is None or self._process.poll() is not None:
            self._process = _start()
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


def _start() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-I", "-S", str(_PROGRAM)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        bufsize=0,
        start_new_session=True,
    )
