"""Processes of the supervisor: each under its keeper (`supervised.py`), with a log file and a bounded end.

Every process that a farm starts inherits the variable `FARM_SUPERVISOR=<state folder>`; what was left behind where even
the keepers were killed is found by it, so that no pid file can point at somebody else's process. (Redis overwrites its
environment; it ends with its keeper by PR_SET_PDEATHSIG.)
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from .supervised import PR_SET_CHILD_SUBREAPER, prctl

MARK = "FARM_SUPERVISOR"
KEEPER = Path(__file__).with_name("supervised.py")
START = (sys.executable, "-m", "farm.parts.start")
"""The first words of a part that is ours, before its module."""
SHOWN = 400
"""The letters of a forked part's command line that `ps` shows."""
NURSERY_LIMIT_S = 60.0
LOG_LIMIT_BYTES = 10 * 2**20
KEEPER_GRACE_S = 7.0
"""The time that a keeper may take beyond its part: it kills and reaps what the part left."""


class Child:
    """A process that another one forked, and handed over."""

    returncode: int | None = None

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def poll(self) -> int | None:
        """Return the exit status as `subprocess` does; None while it runs."""
        if self.returncode is None and (ended := os.waitpid(self.pid, os.WNOHANG))[0]:
            self.returncode = os.waitstatus_to_exitcode(ended[1])
        return self.returncode


class Nursery:
    """The process that forks parts (`parts/start.py`). Use it from the main thread, which forked parts end with."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        words, pipe = [*START, "-" * SHOWN], subprocess.PIPE
        self._popen = subprocess.Popen(words, env=environment, stdin=pipe, stdout=pipe, start_new_session=True)

    def fork(self, words: Sequence[str], environment: Mapping[str, str], log: Path) -> Child | None:
        """Return a keeper with its part, a child of this process; None where the nursery has ended, or does not answer,
        and is ended."""
        asked = {"words": words, "environment": dict(environment), "log": str(log.absolute())}
        told, said = self._popen.stdin, self._popen.stdout
        assert told and said
        prctl(PR_SET_CHILD_SUBREAPER, 1)  # while it is handed over
        try:
            told.write(json.dumps(asked).encode() + b"\n")
            told.flush()
            if select.select([said], [], [], NURSERY_LIMIT_S)[0]:
                return Child(int(said.readline()))
        except (OSError, ValueError):
            pass
        finally:
            prctl(PR_SET_CHILD_SUBREAPER, 0)
        self.end()
        return None

    def end(self) -> None:
        """End it; its parts stay."""
        self._popen.kill()
        self._popen.communicate()


class Process:
    """One running process and its family. Start it from the main thread: a keeper ends with the thread it came from."""

    def __init__(
        self,
        command: Sequence[str], environment: Mapping[str, str], log: Path, grace_s: float,
        nursery: Nursery | None = None,
    ) -> None:  # fmt: skip
        """`nursery` forks a command that begins with `START`; where it cannot, that starts as any other."""
        self.grace_s = grace_s
        words = [sys.executable, "-I", "-S", str(KEEPER), str(os.getpid()), str(grace_s), *command]
        rotate(log)
        forked = nursery.fork(words, environment, log) if nursery and is_forked(command) else None
        self._keeper = forked or _started(words, environment, log)

    @property
    def pid(self) -> int:
        """Pid of the keeper, which leads the session."""
        return self._keeper.pid

    def poll(self) -> int | None:
        """Exit status of the part (128 + signal where a signal ended it); None while it runs."""
        return self._keeper.poll()

    def stop(self) -> None:
        """Ask it to end; returns at once. `join` waits."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGTERM)

    def join(self) -> int:
        """Wait for the end after `stop`; SIGKILL to keeper and family where the grace passed without one."""
        limit = time.monotonic() + self.grace_s + KEEPER_GRACE_S
        while (status := self.poll()) is None:
            if time.monotonic() > limit:
                os.kill(self.pid, signal.SIGKILL)  # its part ends with it; the rest is found by its mark
            time.sleep(0.01)
        return status


def is_forked(command: Sequence[str]) -> bool:
    """Return whether a nursery can fork it."""
    return tuple(command[: len(START)]) == START


def _started(words: Sequence[str], environment: Mapping[str, str], log: Path) -> subprocess.Popen[bytes]:
    with log.open("ab") as output:
        return subprocess.Popen(
            words, env=dict(environment), stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )


def rotate(log: Path) -> None:
    """Keep one older log where the present one has grown."""
    log.parent.mkdir(parents=True, exist_ok=True)
    if log.exists() and log.stat().st_size > LOG_LIMIT_BYTES:
        log.replace(log.with_name(log.name + ".1"))


def last_lines(log: Path, count: int = 8) -> list[str]:
    """The end of a log, for error messages."""
    if not log.exists():
        return []
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - 16_384))
        return file.read().decode(errors="replace").splitlines()[-count:]


def marked(state: Path) -> list[int]:
    """Pids of this user's processes that a supervisor of this state folder started."""
    return [pid for pid, mark in _marks() if mark == state.absolute() and pid != os.getpid()]


def marks() -> set[Path]:
    """State folders of every farm of this user that has processes."""
    return {mark for _, mark in _marks()}


def _marks() -> Iterator[tuple[int, Path]]:
    """Pid and state folder of every marked process of this user; root alone could read others' environments."""
    import psutil  # loading it takes a moment, and most commands look at no process

    for process in psutil.process_iter(["environ", "uids"]):
        mark = (process.info["environ"] or {}).get(MARK)
        if mark and process.info["uids"].real == os.getuid():
            yield process.pid, Path(mark)


def listens(port: int, state: Path) -> bool:
    """Return whether a process of this state folder's farm, and no other, listens on this TCP port."""
    import psutil

    sockets = psutil.net_connections("tcp")
    owners = {each.pid for each in sockets if each.status == psutil.CONN_LISTEN and each.laddr.port == port}
    return bool(owners) and owners <= set(marked(state))


def reap_leftovers(state: Path, limit_s: float = 5.0) -> int:
    """End whatever an earlier supervisor of this state folder left behind; how many there were.

    Call it only while holding the state's lock: then whatever is marked belongs to nobody.
    """
    left = first = marked(state)
    limit = time.monotonic() + limit_s
    while left and time.monotonic() < limit:
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(0.05)
        left = marked(state)
    return len(first)
