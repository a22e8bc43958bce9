"""Braked processes really get less of the processor, and go on when the brake is gone."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.waiting import eventually
from virtual_phones.programs.brake import CYCLE_S, MOST_DEBT_S, Pace
from virtual_phones.programs.slowing import Builds, Slowing

SPIN = "import time\nwhile True: pass"
HERTZ = os.sysconf("SC_CLK_TCK")


@pytest.fixture
def busy() -> Iterator[int]:
    """Pid of a process that wants a whole core."""
    with subprocess.Popen([sys.executable, "-I", "-S", "-c", SPIN]) as process:
        yield process.pid
        process.kill()


@pytest.fixture
def idle() -> Iterator[int]:
    """Pid of a process that does nothing, so that it is stopped and continued without waiting for a core."""
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process.pid
        process.kill()


@pytest.fixture
def slowing() -> Iterator[Slowing]:
    slowing = Slowing()
    yield slowing
    slowing.close()


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / HERTZ


def is_stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def is_free(pid: int, looks: int = 50) -> bool:
    """Judge whether it is never found stopped in so many cycles of the brake."""
    for _ in range(looks):
        if is_stopped(pid):
            return False
        time.sleep(CYCLE_S)
    return True


@pytest.mark.parametrize("share", [0.02, 0.2, 0.5, 0.8, 0.99])
@pytest.mark.parametrize("late_s", [0.0, 0.001, 0.02])
def test_a_process_runs_for_its_share_however_late_the_brake_wakes_up(share: float, late_s: float, seed: int) -> None:
    """The clock is our own. After each cycle it had no more than its share, and at most one debt less."""
    late, pace = random.Random(seed), Pace(share)
    ran_s = stopped_s = 0.0
    for _ in range(2000):
        took_s = CYCLE_S * share + late.uniform(0, late_s)
        ran_s += took_s
        if asked_s := pace.stop_s(took_s):
            took_s = asked_s + late.uniform(0, late_s)
            stopped_s += took_s
            pace.was_stopped(asked_s, took_s)
        wanted_s = ran_s * (1 - share) / share
        assert wanted_s - 1e-9 <= stopped_s <= wanted_s + late_s + 1e-9
    assert ran_s / (ran_s + stopped_s) == pytest.approx(share, rel=0.01, abs=0.001)


def test_of_a_very_long_stop_only_a_part_is_given_back() -> None:
    """A machine that slept for an hour does not let its phones run unbraked for one."""
    pace = Pace(0.5)
    pace.was_stopped(0.001, 3600.0)
    assert pace.stop_s(2 * MOST_DEBT_S) == pytest.approx(MOST_DEBT_S)


def test_a_braked_process_is_stopped_again_and_again(idle: int, slowing: Slowing) -> None:
    slowing.hold(0.5, [idle])
    for _ in range(5):
        eventually(lambda: is_stopped(idle))
        eventually(lambda: not is_stopped(idle))


def test_a_braked_process_goes_on(busy: int, slowing: Slowing) -> None:
    slowing.hold(0.3, [busy])
    eventually(lambda: is_stopped(busy))
    before = cpu_s(busy)
    eventually(lambda: cpu_s(busy) > before + 0.1)


def test_what_is_no_longer_held_runs_freely(idle: int, slowing: Slowing) -> None:
    slowing.hold(0.1, [idle])
    eventually(lambda: is_stopped(idle))
    slowing.hold(1.0, [idle])
    eventually(lambda: is_free(idle))


def test_there_is_no_brake_where_none_is_needed(busy: int, slowing: Slowing) -> None:
    slowing.hold(1.0, [busy])
    slowing.hold(0.5, [])
    assert slowing.pid is None


@pytest.mark.parametrize("number", [None, signal.SIGTERM])
def test_its_end_leaves_nothing_stopped(idle: int, slowing: Slowing, number: signal.Signals | None) -> None:
    slowing.hold(0.05, [idle, 2**22 + 1])
    eventually(lambda: is_stopped(idle))
    assert slowing.pid
    if number:
        os.kill(slowing.pid, number)
    slowing.close()
    assert slowing.pid is None
    assert is_free(idle)


def test_what_a_frozen_brake_has_stopped_is_let_go(
    idle: int, slowing: Slowing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("virtual_phones.programs.slowing._END_S", 0.1)
    slowing.hold(0.02, [idle])
    eventually(lambda: is_stopped(idle))
    assert slowing.pid
    os.kill(slowing.pid, signal.SIGSTOP)
    os.kill(idle, signal.SIGSTOP)
    slowing.close()
    assert is_free(idle)


def test_a_slow_build_is_told_by_what_a_process_executes(tmp_path: Path, idle: int) -> None:
    """Whatever it is called and wherever it lies."""
    usual, other = Path(f"/proc/{idle}/exe").resolve(), tmp_path / "sleep"
    shutil.copy(usual, other)
    with other.open("ab") as file:
        file.write(b"another build")
    builds, slow = Builds(), hashlib.sha256(other.read_bytes()).hexdigest()[:12]
    with subprocess.Popen([other, "600"]) as process:
        try:
            assert builds.share((slow, 0.5), [idle, process.pid]) == 0.5
            assert builds.share((slow, 0.5), [idle]) == builds.share(None, [process.pid]) == 1.0
        finally:
            process.kill()
    assert builds.share((slow, 0.5), [process.pid]) == 1.0, "it has ended"
