"""Run one part of the farm so that none of its processes outlives the supervisor.

    python supervised.py SUPERVISOR_PID GRACE_S COMMAND...

The keeper is the part's parent and its *child subreaper*: a process that the part detaches (an agent with its own
session) becomes the keeper's child when its own parent ends. When the part ends, when the keeper is told to stop
(SIGTERM), or when the supervisor dies in any way (PR_SET_PDEATHSIG), the whole family ends: SIGTERM to the part, a
grace, then SIGKILL to all that is left. There is one keeper a part, so it has to be small: it imports little, and takes
4 MB. One that was forked (`parts/start.py`) shares what it has loaded.

Exit status: the part's own; 128 + signal where a signal ended it.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
STOP_SIGNALS = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
ORPHAN_GRACE_S = 1.0
"""Grace of a part whose supervisor died: it can no longer finish anything useful."""
REAP_LIMIT_S = 5.0
"""The time that killed processes may take to go away (a driver in the kernel may hold them)."""


def prctl(option: int, value: int) -> None:
    """Call prctl(2). Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option}) failed")


def children_by_parent() -> dict[int, list[int]]:
    """Every process of this machine, by its parent's pid."""
    found: dict[int, list[int]] = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
                stat = file.read()
        except OSError:
            continue  # it ended meanwhile
        parent = int(stat[stat.rindex(b")") + 2 :].split()[1])  # the name may hold spaces and brackets
        found.setdefault(parent, []).append(int(pid))
    return found


def descendants(pid: int) -> list[int]:
    """Children of a process, their children, and so on."""
    tree = children_by_parent()
    found: list[int] = []
    queue = list(tree.get(pid, ()))
    while queue:
        child = queue.pop()
        found.append(child)
        queue.extend(tree.get(child, ()))
    return found


def end_family() -> None:
    """SIGKILL every descendant and reap it, until none is left."""
    limit = time.monotonic() + REAP_LIMIT_S
    while time.monotonic() < limit:
        for pid in descendants(os.getpid()):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.01)


class Keeper:
    """Parent of one part until it ends."""

    def __init__(self, supervisor: int, grace_s: float) -> None:
        self.supervisor = supervisor
        self.grace_s = grace_s
        self.kill_at: float | None = None
        self.status: int | None = None

    def fork(self) -> bool:
        """Begin to keep, and start the part: True in the part, which becomes what it is to run."""
        signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS | {signal.SIGCHLD})
        prctl(PR_SET_CHILD_SUBREAPER, 1)
        prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != self.supervisor:
            os._exit(1)  # it died before we could ask to be told
        keeper = os.getpid()
        self.part = os.fork()
        if self.part:
            return False
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != keeper:
            os._exit(1)
        signal.pthread_sigmask(signal.SIG_SETMASK, set())
        return True

    def watch(self) -> int:
        """Wait for the part's end, end its family; the exit status."""
        while self.status is None and not (self.kill_at is not None and time.monotonic() >= self.kill_at):
            self._wait()
        end_family()
        return 128 + signal.SIGKILL if self.status is None else self.status

    def _wait(self) -> None:
        left = 60.0 if self.kill_at is None else max(0.0, self.kill_at - time.monotonic())
        received = signal.sigtimedwait(STOP_SIGNALS | {signal.SIGCHLD}, left)
        if received is not None and received.si_signo in STOP_SIGNALS:
            self._stop()
        self._reap()

    def _stop(self) -> None:
        grace_s = self.grace_s if os.getppid() == self.supervisor else ORPHAN_GRACE_S
        if self.kill_at is None:
            os.kill(self.part, signal.SIGTERM)
        self.kill_at = min(self.kill_at or float("inf"), time.monotonic() + grace_s)

    def _reap(self) -> None:
        try:
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if ended[0] == self.part:
                    code = os.waitstatus_to_exitcode(ended[1])
                    self.status = code if code >= 0 else 128 - code
        except ChildProcessError:
            pass


def main() -> int:
    supervisor, grace_s, *command = sys.argv[1:]
    keeper = Keeper(int(supervisor), float(grace_s))
    if not keeper.fork():
        return keeper.watch()
    try:
        os.execvp(command[0], command)  # noqa: S606
    except OSError as e:
        os.write(2, f"{command[0]}: {e}\n".encode())
        return 127


if __name__ == "__main__":
    sys.exit(main())
