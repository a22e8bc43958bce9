"""A keeper's part and all that it leaves end with the part, with a stop, and with the supervisor."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from farm.processes import MARK, START, Nursery, Process, last_lines, marked, reap_leftovers, rotate
from tests.waiting import eventually

DETACHED = "import time; time.sleep(300)"
STUBBORN = f"""
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
subprocess.Popen([sys.executable, "-c", {DETACHED!r}], start_new_session=True)
print("ready", flush=True)
time.sleep(300)
"""
"""Ignores SIGTERM, and has a child in a session of its own."""

LEAVES = f"""
import subprocess, sys
subprocess.Popen([sys.executable, "-c", {DETACHED!r}], start_new_session=True)
print("ready", flush=True)
sys.exit(7)
"""
"""Ends by itself and leaves a child in a session of its own."""


def start(code: str, state: Path, grace_s: float = 0.5) -> Process:
    environment = {**os.environ, MARK: str(state.absolute())}
    return Process([sys.executable, "-c", code], environment, state / "part.log", grace_s)


def is_ready(state: Path) -> bool:
    return last_lines(state / "part.log") == ["ready"]


def test_a_stop_ends_the_whole_family_within_its_grace(tmp_path: Path) -> None:
    process = start(STUBBORN, tmp_path)
    eventually(lambda: is_ready(tmp_path))
    eventually(lambda: len(marked(tmp_path)) == 3)  # a program has no environment for an instant while it starts
    started = time.monotonic()
    process.stop()
    assert process.join() == 128 + signal.SIGKILL
    assert time.monotonic() - started < 60.0
    assert marked(tmp_path) == []


def test_what_a_part_leaves_ends_with_it_and_its_status_is_told(tmp_path: Path) -> None:
    process = start(LEAVES, tmp_path)
    eventually(lambda: process.poll() is not None)
    assert process.poll() == 7
    assert marked(tmp_path) == []


def test_a_part_killed_by_a_signal_says_which(tmp_path: Path) -> None:
    process = start("import os; os.abort()", tmp_path)
    eventually(lambda: process.poll() is not None)
    assert process.poll() == 128 + signal.SIGABRT


def test_a_command_that_is_not_there_is_status_127(tmp_path: Path) -> None:
    process = Process(["/no/such/program"], os.environ, tmp_path / "part.log", 1.0)
    eventually(lambda: process.poll() is not None)
    assert process.poll() == 127
    assert "No such file" in last_lines(tmp_path / "part.log")[-1]


SUPERVISOR = """
import sys, time
from pathlib import Path
from tests.integration.farm.test_keeper import STUBBORN, is_ready, start
state = Path(sys.argv[1])
start(STUBBORN, state, grace_s=60.0)
while not is_ready(state):
    time.sleep(0.02)
print("ready", flush=True)
time.sleep(300)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_all_ends_when_the_supervisor_is_killed(tmp_path: Path, number: int) -> None:
    root = Path(__file__).resolve().parents[3]
    with subprocess.Popen(
        [sys.executable, "-c", SUPERVISOR, str(tmp_path)], cwd=root, stdout=subprocess.PIPE, text=True
    ) as supervisor:
        assert supervisor.stdout is not None
        assert supervisor.stdout.readline() == "ready\n"
        eventually(lambda: len(marked(tmp_path)) == 3)
        supervisor.send_signal(number)
        supervisor.wait(60)
    eventually(lambda: marked(tmp_path) == [])


def test_leftovers_of_a_killed_keeper_are_reaped(tmp_path: Path) -> None:
    process = start(STUBBORN, tmp_path)
    eventually(lambda: is_ready(tmp_path))
    eventually(lambda: len(marked(tmp_path)) == 3)
    (detached,) = (pid for pid in marked(tmp_path) if psutil.Process(pid).cmdline()[-1] == DETACHED)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    eventually(lambda: marked(tmp_path) == [detached])
    assert reap_leftovers(tmp_path) == 1
    assert marked(tmp_path) == []


TELLS = """
import json, os, sys, threading
own = open("/proc/self/status").read().split("\\n")
facts = {
    "is": [__name__, *sys.argv[1:]], "own": [os.environ["OWN"], os.getcwd(), os.umask(0o77)],
    "leads": [os.getsid(0) == os.getppid(), os.getpgid(0) == os.getppid()],
    "signals": [line for line in own if line.startswith(("SigB", "SigI", "SigC"))], "threads": threading.active_count(),
    "files": {number: os.readlink(f"/proc/self/fd/{number}") for number in range(3)},
    "more": [each for each in os.listdir("/proc/self/fd") if int(each) > 3],
}
print(json.dumps(facts), flush=True)
"""


def test_a_forked_part_is_as_one_that_was_started_alone(tmp_path: Path, seed: int) -> None:
    """Its state, its command line, its family's end, its status; also of those that start when what forks is killed."""
    root = Path(__file__).resolve().parents[3]
    for name, code in {"stubborn": TELLS + STUBBORN, "leaves": LEAVES}.items():
        (tmp_path / f"{name}.py").write_text(code)
    environment = {**os.environ, MARK: str(tmp_path.absolute()), "PYTHONPATH": f"{tmp_path}:{root}"}
    log, nursery, told = tmp_path / "part.log", Nursery(environment), []
    own = {**environment, "OWN": f"{seed} # ü"}
    try:
        for forks in (nursery, None):
            log.unlink(missing_ok=True)
            process = Process([*START, "stubborn", "--more", str(seed)], own, log, 0.5, forks)
            eventually(lambda: last_lines(log)[1:] == ["ready"])
            family = [each for each in map(psutil.Process, marked(tmp_path)) if each.parent()]
            (part,) = (each for each in family if each.ppid() == process.pid)
            assert {part.pid, process.pid} < {each.pid for each in family}
            words = [" ".join(each.cmdline()) for each in (psutil.Process(process.pid), part)]
            told.append((last_lines(log)[0], words, psutil.Process(process.pid).ppid()))
            process.stop()
            assert process.join() == 128 + signal.SIGKILL
            assert not psutil.pid_exists(part.pid)
        assert told[0] == told[1]
        for _ in "forked", "alone":
            log.unlink()
            process = Process([*START, "leaves"], own, log, 0.5, nursery)
            eventually(lambda process=process: process.poll() is not None)
            assert (process.poll(), last_lines(log)) == (7, ["ready"])
            random.Random(seed).choice((nursery.end, nursery._popen.kill))()
        assert marked(tmp_path) == []
    finally:
        nursery.end()


def test_leftovers_of_another_state_folder_are_left_alone(tmp_path: Path) -> None:
    mine, other = tmp_path / "a", tmp_path / "ab"
    process = start("print('ready', flush=True); import time; time.sleep(300)", other)
    eventually(lambda: is_ready(other))
    assert reap_leftovers(mine) == 0
    assert process.poll() is None
    process.stop()
    process.join()


def test_a_log_that_has_grown_is_put_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("farm.processes.LOG_LIMIT_BYTES", 10)
    log = tmp_path / "x.log"
    log.write_text("0123456789abc")
    rotate(log)
    assert not log.exists()
    assert (tmp_path / "x.log.1").read_text() == "0123456789abc"
