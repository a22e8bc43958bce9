"""The low-memory killer of a virtual phone: it ends the largest program, logs it as lmkd does, leaves the others."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import ValidationError

from tests.waiting import LIMIT_S
from virtual_phones.phone import Phone
from virtual_phones.profile import LowMemory, Profile, load_profile, profile_names
from virtual_phones.programs import low_memory
from virtual_phones.system.processes import ProcessTable, limit_data, unshared_bytes

from .conftest import Sh

MB = 1 << 20
HOLD = "import sys; held = bytearray(b'x' * int(sys.argv[1])); print('held', flush=True); sys.stdin.read()"


@pytest.fixture
def phone(tmp_path: Path) -> Phone:
    """It leaves 60 MB to programs, of which 20 MB are to stay free."""
    known = load_profile("galaxy_s7")
    limits = LowMemory(system_bytes=known.memory_bytes - 60 * MB, kill_free_bytes=20 * MB)
    return Phone(known.model_copy(update={"low_memory": limits}), 0, tmp_path, ProcessTable(), None)


@pytest.fixture
def programs() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Programs of 4 MB and of 32 MB, beside what Python needs."""
    running = [_holding(4 * MB), _holding(32 * MB)]
    yield running
    for program in running:
        program.kill()
        program.communicate()


def _holding(size: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-I", "-S", "-c", HOLD, str(size)]
    program = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert program.stdout is not None and program.stdout.readline() == b"held\n"
    return program


def test_the_largest_is_killed_and_the_log_tells(phone: Phone, programs: list[subprocess.Popen[bytes]]) -> None:
    small, large = programs
    left = low_memory.look(phone, [small.pid])
    assert left == pytest.approx(40 * MB - unshared_bytes(small.pid), abs=MB) and phone.log.lines() == []
    used_kb = unshared_bytes(large.pid) // 1024
    low_memory.look(phone, [small.pid, large.pid])
    assert large.wait(LIMIT_S) == -signal.SIGKILL and small.poll() is None
    (line,) = phone.log.lines(tags=["lowmemorykiller"])
    form = r"\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} +389 +389 I lowmemorykiller: Kill '(.+)' \((\d+)\), uid 2000, "
    form += r"oom_score_adj 0 to free (\d+)kB rss, 0kB swap; reason: min watermark is breached"
    found = re.match(form, line)
    assert found and int(found[2]) == large.pid and abs(int(found[3]) - used_kb) < 4096
    phone.boot()
    assert phone.log.lines() == []


def test_what_exceeds_the_memory_is_refused(programs: list[subprocess.Popen[bytes]]) -> None:
    limit_data(programs[0].pid, 1)
    greedy = "import sys; sys.stdin.readline(); bytearray(200 << 20)"
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", greedy], stdin=subprocess.PIPE, stderr=subprocess.PIPE
    ) as program:
        limit_data(program.pid, 60 * MB)
        _, said = program.communicate(b"\n", timeout=LIMIT_S)
    assert program.returncode == 1 and b"MemoryError" in said


def test_logcat_prints_what_is_asked_for(phone: Phone, sh: Sh) -> None:
    for number in range(3):
        phone.log.add("I", "lowmemorykiller", 389, f"Kill {number}")
    phone.log.add("D", "other", 7, "nothing")
    assert len(sh("logcat -d").out.splitlines()) == 4
    newest = sh("logcat -d -b main,system -v threadtime -t 2 lowmemorykiller:I *:S").out.splitlines()
    assert [line.rpartition(": ")[2] for line in newest] == ["Kill 1", "Kill 2"]


def test_profiles_leave_memory_to_programs() -> None:
    for name in profile_names():
        known = load_profile(name)
        assert known.low_memory is not None and known.memory_bytes - known.low_memory.system_bytes > 900 * MB
    with pytest.raises(ValidationError, match="together must be less than memory_bytes"):
        Profile.model_validate(load_profile("nexus_5").model_dump() | {"memory_bytes": 1_000_000_001})
