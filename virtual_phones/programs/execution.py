"""Executables of the phone's own tree as real processes of the host."""

from __future__ import annotations

import errno
import json
import posixpath
import signal
import time
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path

from virtual_phones.phone import Phone
from virtual_phones.system.garbage import Garbler
from virtual_phones.system.processes import limit_data, limit_growth, reap
from virtual_phones.system.tree import refusal

from .child_process import ChildProcess
from .environment import environment_of, stand_in
from .streams import BytesSource, Io, Sink

_PHONE_FOLDERS = ("/data", "/sdcard", "/storage", "/system", "/vendor", "/sys", "/proc", "/cache")
_SIGNAL_STATUS = 0x80


def find_executable(phone: Phone, name: str, cwd: str) -> Path:
    """Host path of an executable of the phone. Raises FileNotFoundError or PermissionError naming it."""
    if "/" not in name:
        raise refusal(errno.ENOENT, name)
    path = phone.tree.host(name, cwd)
    if not path.exists():
        raise refusal(errno.ENOENT, name)
    if path.is_dir() or not path.stat().st_mode & 0o111 or not phone.pushed.knows(path):
        raise refusal(errno.EACCES, name)
    return path


def host_argument(phone: Phone, argument: str) -> str:
    """An argument with its phone path made a host path: `/data/x`, `--name=/data/x` or `NAME=/data/x`."""
    name, equals, path = argument.rpartition("=") if "=/" in argument else ("", "", argument)
    inside = any(path == folder or path.startswith(folder + "/") for folder in _PHONE_FOLDERS)
    return f"{name}{equals}{phone.tree.host(path)}" if inside else argument


async def execute(
    phone: Phone, executable: Path, argv: Sequence[str], cwd: str, variables: dict[str, str], io: Io
) -> int:
    """Run an executable with paths translated; its exit status, 0x80 | signal where it was killed.

    Cancelling (the host closed the stream) sends SIGHUP to this process alone, as adbd does: a detached agent goes on.
    """
    _note_journal(phone, argv, cwd)
    environment = environment_of(phone) | {
        name: host_argument(phone, value) for name, value in variables.items() if name not in ("HOME", "PATH", "TMPDIR")
    }
    words = [str(executable), *(host_argument(phone, argument) for argument in argv[1:])]
    program, words = stand_in(phone, executable, words)
    if "--marker" in argv:
        note_run(phone.folder, argv, [process.pid for process in phone.table.of(phone.tree.root)])
    nothing_comes = isinstance(io.stdin, BytesSource) and io.stdin.is_empty
    try:
        child = ChildProcess(
            words,
            program=program,
            folder=phone.tree.host(cwd),
            environment=environment,
            has_input=not nothing_comes,
            at_end=phone.own_children.discard,
        )
    except OSError as error:
        raise OSError(error.errno, error.strerror, argv[0]) from error
    phone.own_children.add(child.pid)
    if phone.tree.full:
        limit_growth([child.pid], allowed=False)
    if limits := phone.profile.low_memory:
        limit_data(child.pid, phone.profile.memory_bytes - limits.system_bytes)
    return await _attend(phone, child, io)


def reap_orphans(phones: Sequence[Phone]) -> None:
    """Collect detached agents that have ended."""
    reap({pid for phone in phones for pid in phone.own_children})


def _note_journal(phone: Phone, argv: Sequence[str], cwd: str) -> None:
    for option, value in pairwise(argv):
        if option == "--journal":
            phone.journals.append(phone.tree.normal(posixpath.join(cwd, value)))


async def _attend(phone: Phone, child: ChildProcess, io: Io) -> int:
    phone.started_at = time.monotonic()
    try:
        code = await child.attend(io.stdin, _garbling(phone, Garbler(), io.out), io.err)
    except BaseException:
        child.signal(signal.SIGHUP)
        raise
    return code if code >= 0 else _SIGNAL_STATUS | -code


def _garbling(phone: Phone, garbler: Garbler, sink: Sink) -> Sink:
    async def write(data: bytes) -> None:
        await sink(garbler.spoil(data) if phone.garbled else data)

    return write


RUNS = "runs.jsonl"
"""The phone as a witness, one JSON object a line beside its files: which agents began to run, and which others were
alive at that moment. The farm never reads it; whoever checks that no two sessions held a phone at once does."""
_PROC = Path("/proc")


def note_run(folder: Path, argv: Sequence[str], alive: Iterable[int]) -> None:
    """Note that a run begins, and the markers of the runs among the processes `alive` inside the phone; anything but
    the run of an agent is not noted."""
    if not (marker := _marker(argv)):
        return
    beside = sorted({other for pid in alive if (other := _marker(_words(pid))) and other != marker})
    line = json.dumps({"t": time.time(), "marker": marker, "beside": beside})
    with (folder / RUNS).open("a") as file:
        file.write(line + "\n")


def _marker(argv: Sequence[str]) -> str:
    """Return what a run was marked with; empty for other commands."""
    if "run" not in argv[1:]:
        return ""
    return next((value for option, value in pairwise(argv) if option == "--marker"), "")


def _words(pid: int) -> list[str]:
    """The command line of a process that is there and has not ended."""
    try:
        words = (_PROC / str(pid) / "cmdline").read_bytes()
    except OSError:
        return []
    return words.decode(errors="replace").split("\0")[:-1]  # empty of a process that has ended and was not reaped
