"""Braked processes really get less of the processor, and go on when the brake is gone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from device_agent.virtual.slowing import Slowing

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


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def stopped_share(pid: int, looks: int = 400) -> float:
    """How often it was found stopped: a measure that other programs on the same cores do not change."""
    found = 0
    for _ in range(looks):
        found += state(pid) == "T"
        time.sleep(0.0017)
    return found / looks


@pytest.mark.parametrize(("share", "least", "most"), [(0.2, 0.5, 0.97), (0.8, 0.03, 0.45)])
def test_a_braked_process_is_stopped_for_the_rest_of_the_time(
    idle: int, slowing: Slowing, share: float, least: float, most: float
) -> None:
    """Loose, because a stop takes effect only when the process has its turn on a core."""
    slowing.hold(share, [idle])
    time.sleep(0.3)
    assert least <= stopped_share(idle) <= most


def test_a_braked_process_is_slow_but_not_frozen(busy: int, slowing: Slowing) -> None:
    slowing.hold(0.3, [busy])
    time.sleep(0.3)
    before, began = cpu_s(busy), time.monotonic()
    while cpu_s(busy) < before + 0.1:
        assert time.monotonic() < began + 30
        time.sleep(0.05)
    assert time.monotonic() - began > 0.1 / 0.3 * 0.8


def test_what_is_no_longer_held_runs_freely(idle: int, slowing: Slowing) -> None:
    slowing.hold(0.1, [idle])
    time.sleep(0.3)
    assert stopped_share(idle, 100) > 0.3
    slowing.hold(1.0, [idle])
    time.sleep(0.3)
    assert stopped_share(idle, 100) == 0


def test_there_is_no_brake_where_none_is_needed(busy: int, slowing: Slowing) -> None:
    slowing.hold(1.0, [busy])
    slowing.hold(0.5, [])
    assert slowing.pid is None


@pytest.mark.parametrize("number", [None, signal.SIGTERM])
def test_its_end_leaves_nothing_stopped(idle: int, slowing: Slowing, number: signal.Signals | None) -> None:
    slowing.hold(0.05, [idle, 2**22 + 1])
    time.sleep(0.3)
    assert slowing.pid
    if number:
        os.kill(slowing.pid, number)
    slowing.close()
    assert slowing.pid is None
    time.sleep(0.3)
    assert stopped_share(idle, 50) == 0
