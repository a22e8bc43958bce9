"""Processes that run inside virtual phones: real processes of this host, found by their environment.

A detached agent leaves its process group and session, so its phone's root in POCKETFARM_SYSROOT, which every child
inherits, is what tells whose it is.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import stat as modes
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT_VARIABLE = "POCKETFARM_SYSROOT"

_PROC = Path("/proc")
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PR_SET_CHILD_SUBREAPER = 36
_SECTOR_BYTES = 512
_END_S = 10.0


@dataclass(frozen=True, slots=True)
class Process:
    """One process inside a phone."""

    pid: int
    name: str
    cpu_s: float
    waited_s: float = 0.0
    """How long its threads waited for a core of this host that others had; 0 where the kernel does not tell."""


class ProcessTable:
    """Looks through /proc for the processes of virtual phones. A process's root is read once, when first seen."""

    def __init__(self) -> None:
        self._root_of: dict[int, str | None] = {}

    def scan(self) -> dict[str, list[Process]]:
        """All phones' processes now, by the phone's root."""
        pids = [int(entry.name) for entry in os.scandir(_PROC) if entry.name.isdigit()]
        self._root_of = {pid: self._root_of[pid] if pid in self._root_of else _root(pid) for pid in pids}
        found: dict[str, list[Process]] = {}
        for pid, root in self._root_of.items():
            if root and (process := _process(pid)):
                found.setdefault(root, []).append(process)
        return found

    def children(self) -> dict[str, list[int]]:
        """Programs that this process started or adopted, by the phone's root: quicker than to scan."""
        found: dict[str, list[int]] = {}
        for pid in _children():
            if pid not in self._root_of:
                self._root_of[pid] = _root(pid)
            if root := self._root_of[pid]:
                found.setdefault(root, []).append(pid)
        return found

    def of(self, root: Path) -> list[Process]:
        """One phone's processes now."""
        return self.scan().get(str(root), [])

    def below(self, folder: Path) -> list[Process]:
        """Processes of all phones whose root lies below a folder."""
        return [
            process
            for root, processes in self.scan().items()
            if Path(root).is_relative_to(folder)
            for process in processes
        ]


def send_signal(processes: list[Process], number: int) -> int:
    """Signal processes; how many were still there."""
    reached = 0
    for process in processes:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process.pid, number)
            reached += 1
    return reached


def private_bytes(pid: int) -> int:
    """Memory that a process shares with no file and nobody else; 0 where it is gone."""
    return _resident_bytes(pid, "RssAnon:")


def unshared_bytes(pid: int) -> int:
    """Memory of a process that is not a copy of a file, so that only its end gives it back; 0 where it is gone."""
    return _resident_bytes(pid, "RssAnon:", "RssShmem:")


def _resident_bytes(pid: int, *kinds: str) -> int:
    try:
        text = (_PROC / str(pid) / "status").read_text()
    except OSError:
        return 0
    rows = (line.split() for line in text.splitlines() if line.startswith(kinds))
    return sum(int(row[1]) * 1024 for row in rows)


def limit_data(pid: int, most: int) -> None:
    """Let a process, and those that it starts, ask for no more memory of its own than this: beyond it is refused."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        resource.prlimit(pid, resource.RLIMIT_DATA, (most, resource.prlimit(pid, resource.RLIMIT_DATA)[1]))


def limit_growth(pids: Iterable[int], *, allowed: bool) -> None:
    """Forbid processes to take more room for any file (they get EFBIG, or SIGXFSZ if they do not ignore it), or allow
    it. What a file of theirs has reserved already stays usable, as on a storage that is full."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            now, most = resource.prlimit(pid, resource.RLIMIT_FSIZE)
            if allowed != (now == most):
                limit = most if allowed else _reserved_bytes(pid)
                resource.prlimit(pid, resource.RLIMIT_FSIZE, (limit, most))


def _reserved_bytes(pid: int) -> int:
    """Room of the largest file that a process has open for writing."""
    folder, sizes = _PROC / str(pid), [0]
    with contextlib.suppress(OSError):  # it ended meanwhile, or closed a file
        for link in (folder / "fd").iterdir():
            flags = int((folder / "fdinfo" / link.name).read_text().split()[3], 8)
            facts = link.stat()
            if flags & os.O_ACCMODE != os.O_RDONLY and modes.S_ISREG(facts.st_mode):
                sizes.append(max(facts.st_size, facts.st_blocks * _SECTOR_BYTES))
    return max(sizes)


def end_all(table: ProcessTable, folder: Path) -> None:
    """SIGKILL to every process of the phones below a folder, until none is left.

    One look is not enough: a process may fork between the look and the signal, and one that was killed is there until
    its next turn on a core. Gives up after `_END_S`: a process that the kernel holds cannot be ended.
    """
    give_up_at = time.monotonic() + _END_S
    while (left := table.below(folder)) and time.monotonic() < give_up_at:
        send_signal(left, signal.SIGKILL)
        time.sleep(0.005)


def adopt_orphans() -> None:
    """Make this process the parent of detached agents, so that they do not stay behind as zombies. Linux only."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def reap(known_children: set[int]) -> None:
    """Collect ended children that were adopted, leaving those in `known_children` to who started them."""
    for pid in _children():
        if pid not in known_children and _state(pid) == "Z":
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


def _children() -> list[int]:
    found: list[int] = []
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):
            found.extend(int(pid) for pid in (task / "children").read_text().split())
    return found


def _root(pid: int) -> str | None:
    try:
        environment = (_PROC / str(pid) / "environ").read_bytes()
    except OSError:
        return None
    prefix = f"{ROOT_VARIABLE}=".encode()
    values = (entry[len(prefix) :] for entry in environment.split(b"\0") if entry.startswith(prefix))
    return os.fsdecode(next(values, b"")) or None


def _stat(pid: int) -> tuple[str, list[str]] | None:
    """Name and the fields behind it; None where the process is gone."""
    try:
        text = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return None
    name, _, rest = text.partition("(")[2].rpartition(")")
    return name, rest.split()


def _state(pid: int) -> str:
    stat = _stat(pid)
    return stat[1][0] if stat else ""


def _process(pid: int) -> Process | None:
    stat = _stat(pid)
    if stat is None or stat[1][0] == "Z":
        return None
    return Process(pid, stat[0], (int(stat[1][11]) + int(stat[1][12])) / _TICKS_PER_S, _waited_s(pid))


def _waited_s(pid: int) -> float:
    """Sum over its threads of the second field of `schedstat`: nanoseconds on a run queue without running."""
    waited_ns = 0
    with contextlib.suppress(OSError, ValueError, IndexError):  # it ended meanwhile, or there is no such file
        for task in (_PROC / str(pid) / "task").iterdir():
            waited_ns += int((task / "schedstat").read_text().split()[1])
    return waited_ns / 1e9
