"""Run other people's code: a process with limits of time, memory and output, of which nothing stays behind."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import secrets
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

MARK = "FARM_FOREIGN"
"""The variable in the environment of the process, and of all that it starts: they are found by it anywhere."""
MEMORY_BYTES = 4 << 30
OUTPUT_BYTES = 16 << 20
"""The most bytes of each file that it writes, its output among them."""
PROCESSES = 256
"""The most processes and threads, beyond those that the machine has when it begins. Root has no limit."""
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Ended:
    """The end of the process."""

    status: int
    output: bytes
    errors: bytes


def run(command: Sequence[str], question: bytes, limit_s: float) -> Ended:
    """Give it the question as its input, and take its answer. Raises TimeoutError where it takes longer."""
    mark = secrets.token_hex(16)
    with contextlib.ExitStack() as stack:
        asked, said, told = (stack.enter_context(tempfile.TemporaryFile()) for _ in range(3))
        asked.write(question)
        asked.seek(0)
        process = subprocess.Popen(
            command, stdin=asked, stdout=said, stderr=told, start_new_session=True, env={**os.environ, MARK: mark}
        )
        try:
            status = process.wait(limit_s)
        except subprocess.TimeoutExpired as e:
            raise TimeoutError(f"no answer within {limit_s:g} s") from e
        finally:
            _end_all(process, mark)
        said.seek(0)
        told.seek(0)
        return Ended(status, said.read(OUTPUT_BYTES), told.read(OUTPUT_BYTES))


def limit_this_process() -> None:
    """Called by the process itself, before it runs what is not ours."""
    for what, most in (
        (resource.RLIMIT_AS, MEMORY_BYTES),
        (resource.RLIMIT_FSIZE, OUTPUT_BYTES),
        (resource.RLIMIT_CORE, 0),
        *((resource.RLIMIT_NPROC, running + PROCESSES) for running in _running()),
    ):
        _, hard = resource.getrlimit(what)
        limit = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (limit, limit))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _running() -> list[int]:
    """Threads of the whole machine, where it tells: the system counts all of a user's against a limit."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        return [int(Path("/proc/loadavg").read_text().split()[3].split("/")[1])]
    return []


def _end_all(process: subprocess.Popen[bytes], mark: str) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()
    while found := _marked(mark):  # what it forked meanwhile
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _marked(mark: str) -> list[int]:
    """Processes that live and have the mark, where the system tells."""
    wanted, found = f"{MARK}={mark}".encode(), list[int]()
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
    return found
