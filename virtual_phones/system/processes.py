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
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT_VARIABLE = "POCKETFARM_SYSROOT"

_PROC = Path("/proc")
_ROOT_IS = f"{ROOT_VARIABLE}="
_PART_BYTES = 1 << 16
_TRIES = 3
"""Looks for the descendants, while some of them end."""
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
    """The time that its threads waited for a core of this host that others had; 0 where the kernel does not tell."""


class ProcessTable:
    """Looks for the processes of virtual phones. A process's root is read once, when it is first seen with one: before
    it has begun its program, a process has the environment of the one that starts it.

    This process started or adopted all that run inside its phones (`adopt_orphans`), so that their descent is enough to
    look at; /proc as a whole has what an earlier server left.
    """

    def __init__(self) -> None:
        self._root_of: dict[int, str] = {}

    def pids(self) -> dict[str, list[int]]:
        """Return what runs, or has just ended, inside all phones, by the phone's root."""
        return self._by_root(_descendants())

    def scan(self) -> dict[str, list[Process]]:
        """All phones' processes now, by the phone's root."""
        return _measured(self.pids())

    def of(self, root: Path) -> list[Process]:
        """One phone's processes now."""
        return _measured({"": self.pids().get(str(root), [])}).get("", [])

    def below(self, folder: Path) -> list[Process]:
        """Processes of all phones whose root lies below a folder, whoever started them."""
        everybody = self._by_root(map(int, filter(str.isdigit, _names("/proc"))))
        return [
            process
            for root, processes in _measured(everybody).items()
            if Path(root).is_relative_to(folder)
            for process in processes
        ]

    def _by_root(self, pids: Iterable[int]) -> dict[str, list[int]]:
        known = self._root_of
        self._root_of = {pid: root for pid in pids if (root := known.get(pid) or _root(pid))}
        found: dict[str, list[int]] = {}
        for pid, root in self._root_of.items():
            found.setdefault(root, []).append(pid)
        return found


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
    text = _read(f"/proc/{pid}/status") or ""
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
    for pid in _children(os.getpid()) or ():
        if pid not in known_children and _state(pid) == "Z":
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


def _read(path: str) -> str | None:
    """A file of /proc; None where what it tells of is gone. They are read all the time: without pathlib's and io's
    layers it takes a fifth."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        parts = []
        while part := os.read(handle, _PART_BYTES):
            parts.append(part)
        return b"".join(parts).decode(errors="surrogateescape")
    except OSError:
        return None
    finally:
        os.close(handle)


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208 (as for `_read`)
    except OSError:
        return []


def _tasks(pid: int) -> list[str]:
    """Folders of a process's threads; none where it is gone."""
    folder = f"/proc/{pid}/task"
    return [f"{folder}/{name}" for name in _names(folder)]


def _children(pid: int) -> list[int] | None:
    """Return children of all its threads; None where one of these ended meanwhile, whose children are another's now."""
    found: list[int] = []
    for task in (tasks := _tasks(pid)):
        children = _read(f"{task}/children")
        if children is None:
            return None
        found.extend(map(int, children.split()))
    return found if tasks else None


def _descendants() -> list[int]:
    """Return this process's descendants. Where one ends meanwhile, its own have moved: then from the beginning."""
    for _ in range(_TRIES):
        found: list[int] = []
        families = [_children(os.getpid())]
        for family in families:
            found.extend(family or ())
            families.extend(_children(pid) for pid in family or ())
        if None not in families:
            break
    return found


def _root(pid: int) -> str | None:
    environment = _read(f"/proc/{pid}/environ") or ""
    values = (entry for entry in environment.split("\0") if entry.startswith(_ROOT_IS))
    return next(values, "").removeprefix(_ROOT_IS) or None


def _stat(pid: int) -> tuple[str, list[str]] | None:
    """Name and the fields behind it; None where the process is gone."""
    text = _read(f"/proc/{pid}/stat")
    if text is None:
        return None
    name, _, rest = text.partition("(")[2].rpartition(")")
    return name, rest.split()


def _state(pid: int) -> str:
    stat = _stat(pid)
    return stat[1][0] if stat else ""


def _measured(pids: Mapping[str, Iterable[int]]) -> dict[str, list[Process]]:
    """Return the processes that run, with what they used."""
    found = {root: [process for pid in some if (process := _process(pid))] for root, some in pids.items()}
    return {root: processes for root, processes in found.items() if processes}


def _process(pid: int) -> Process | None:
    stat = _stat(pid)
    if stat is None or stat[1][0] == "Z":
        return None
    return Process(pid, stat[0], (int(stat[1][11]) + int(stat[1][12])) / _TICKS_PER_S, _waited_s(pid))


def _waited_s(pid: int) -> float:
    """Sum over its threads of the second field of `schedstat`: nanoseconds on a run queue without running."""
    fields = ((_read(f"{task}/schedstat") or "").split() for task in _tasks(pid))
    return sum(int(each[1]) for each in fields if len(each) > 1) / 1e9
