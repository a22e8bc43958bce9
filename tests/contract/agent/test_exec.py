"""Programs of somebody else below the agent: what they print, how they end, and that nothing of them stays."""

from __future__ import annotations

import os
import random
import signal
import subprocess
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from tests.waiting import eventually

from .driver import TIMEOUT_S, Agent, Ended, read_events
from .phone_nodes import battery, write_nodes

ALIVE = "import os, sys, time; sys.stdout.write(str(os.getpid()) + chr(10)); sys.stdout.flush(); time.sleep(100)"


def argv(agent: Agent, *words: str, **options: object) -> list[str]:
    given = {"folder": agent.folder, "samples": 1} | options
    named = [word for name, value in given.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    return [str(agent.binary), "exec", *named, "--", *words]


def run(agent: Agent, *words: str, **options: object) -> Ended:
    return agent.call(argv(agent, *words, **options))


def script(agent: Agent, name: str, text: str) -> str:
    path = agent.folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return f"./{name}"


def is_gone(pid: int) -> bool:
    def ended() -> bool:
        with suppress(OSError):
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        return True

    return eventually(ended, 10)


def test_each_sample_is_a_run_and_every_line_has_its_time(agent: Agent) -> None:
    own = script(
        agent, "own", 'echo "$1 $OWN"; sleep 0.05; printf "no end"; echo bad >&2; printf "\\377\\n"; echo last'
    )
    ended = run(agent, own, "a b", warmup=1, samples=2, variable="OWN=x")
    assert ended.one("result").samples == 2
    samples, processes, lines = ended.all("sample"), ended.all("process"), ended.all("line")
    assert [(each.phase, each.index) for each in samples] == [("warmup", 0), ("timed", 0), ("timed", 1)]
    for sample, process in zip(samples, processes, strict=True):
        assert (process.start_ns, process.end_ns - process.start_ns) == (sample.start_ns, sample.duration_ns)
        assert sample.duration_ns > 50e6 and process.status == process.signal == 0 and process.peak_rss_bytes > 0
        mine = [line for line in lines if (line.phase, line.index) == (sample.phase, sample.index)]
        out = [line for line in mine if line.stream == "stdout"]
        assert [line.text for line in out] == ["a b x", "no end\ufffd", "last"]
        assert [line.text for line in mine if line.stream == "stderr"] == ["bad"]
        assert process.start_ns < out[0].t_ns < out[1].t_ns - 45e6 and out[-1].t_ns < process.end_ns + 20e6


TREE = """
import os, sys, time
def pss(pid): return next(int(line.split()[1]) << 10 for line in open(f"/proc/{pid}/smaps_rollup") if "Pss:" in line)
both, own = (bytearray(int(mb) << 20) for mb in sys.argv[1:])
both[::4096] = b"x" * (len(both) // 4096)
reading, writing = os.pipe()
if not (child := os.fork()):
    own[::4096] = b"x" * (len(own) // 4096)
    os.write(writing, b"x")
    time.sleep(100)
os.read(reading, 1)
began = int(open("/proc/self/stat").read().rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
time.sleep(0.5 + 1.5 * (time.clock_gettime(time.CLOCK_BOOTTIME) - began))  # each look is twice as late as the last
print(pss(os.getpid()) + pss(child))
"""


def test_memory_of_a_tree_is_counted_once(agent: Agent, seed: int) -> None:
    """Memory that two processes share counts once, as the kernel's proportional shares tell the program itself."""
    chance = random.Random(seed)
    sizes = [str(chance.randint(1, 60)) for _ in range(2)]
    ended = run(agent, "python3", "-c", TREE, *sizes)
    told, found = int(ended.all("line")[0].text), ended.one("memory")
    assert found.pss_bytes is not None and abs(found.pss_bytes - told) < 3 << 20
    brief = run(agent, "true")
    process = brief.one("process")
    assert brief.one("memory").pss_bytes is None or process.end_ns - process.start_ns > 90e6, "nobody looked so early"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("./nothing",), "cannot start ./nothing: No such file or directory"),
        (("./plain",), "cannot start ./plain: Permission denied"),
        (("./data",), "cannot start ./data: Exec format error"),
        (("sh", "-c", "exit 3"), "ended with exit status 3"),
        (("sh", "-c", "kill -SEGV $$"), "signal 11 ended"),
        (("sh", "-c", "kill -KILL $$"), "signal 9 ended"),
    ],
)
def test_a_program_that_fails_ends_the_block(words: tuple[str, ...], told: str, agent: Agent) -> None:
    (agent.folder / "plain").write_text("x")
    (agent.folder / "data").write_bytes(b"\x7fELF" + bytes(60))
    (agent.folder / "data").chmod(0o755)
    ended = run(agent, *words, samples=3)
    assert ended.error.code == "program_failed" and told in ended.error.message and ended.all("sample") == []


def test_libraries_and_the_path_begin_with_the_folder(agent: Agent) -> None:
    script(agent, "tool", 'echo "$LD_LIBRARY_PATH $0"')
    (line,) = run(agent, "tool").all("line")
    assert line.text.startswith(f"{agent.folder}:{agent.folder}/lib") and line.text.endswith("/tool")


def test_output_is_bounded_and_what_is_left_out_is_counted(agent: Agent) -> None:
    length, count = random.randint(1, 2000), random.randint(2000, 20_000)
    ended = run(agent, "python3", "-c", f"for _ in range({count}): print('x' * {length})")
    kept = ended.all("line")
    assert sum(len(line.text) for line in kept) <= 1 << 18
    assert len(kept) + ended.one("process").dropped_bytes // length == count


def test_nothing_of_it_stays(agent: Agent) -> None:
    """Whatever a program leaves running ends with it; and all of it ends with the agent, however that ends."""
    left = run(agent, "sh", "-c", "sleep 100 & echo $!")
    assert is_gone(int(left.one("line").text))
    late = run(agent, "sh", "-c", "echo $$; exec sleep 100", deadline_s=1)
    assert late.error.code == "deadline" and is_gone(int(late.all("line")[0].text))
    for how in (signal.SIGTERM, signal.SIGKILL):
        journal = agent.folder / f"journal{how}"
        words = argv(agent, "python3", "-c", ALIVE, journal=journal)
        process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=agent.environment({}))
        assert process.stdout is not None
        line = next(line for line in process.stdout if '"line"' in line or process.poll() is not None)
        process.send_signal(how)
        process.communicate(timeout=TIMEOUT_S)
        assert is_gone(int(line.rpartition('"text":"')[2].split('"')[0]))
        assert how is signal.SIGKILL or read_events(journal.read_text())[-1].event == "error"


def test_what_outlives_a_killed_agent_is_stopped_by_its_marker(agent: Agent) -> None:
    words = argv(agent, "sh", "-c", f'python3 -c "{ALIVE}" & wait', marker="p/job/1")
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=agent.environment({}))
    assert process.stdout is not None
    line = next(line for line in process.stdout if '"line"' in line)
    pid = int(line.rpartition('"text":"')[2].split('"')[0])
    process.kill()
    process.communicate(timeout=TIMEOUT_S)
    os.kill(pid, 0)  # the shell ended with the agent, its child did not
    stop = [str(agent.binary), "stop", "--marker-prefix"]
    for marker, gone in (("q/", "0"), ("p/", "1")):
        done = subprocess.run(
            [*stop, marker], capture_output=True, text=True, timeout=30, env=agent.environment({}), check=True
        )
        assert done.stdout.strip() == gone
    assert is_gone(pid)


def test_its_load_counts_as_our_own(agent: Agent) -> None:
    """Others' share of the processors is what neither the agent nor the program took, nor the program's children."""
    burn = "import time; end = time.monotonic() + 1.2\nwhile time.monotonic() < end: pass"
    ended = run(agent, "sh", "-c", f'python3 -c "{burn}"', power_period_ms=100)
    known = [each for each in ended.all("power") if each.own_busy is not None]
    own = sum(each.own_busy for each in known) / len(known)
    used = ended.one("process")
    wall = (used.end_ns - used.start_ns) * (os.cpu_count() or 1)
    assert own == pytest.approx((used.user_ns + used.system_ns) / wall, rel=0.35)


def test_a_program_has_the_course_of_our_own_block(agent: Agent) -> None:
    """Each option of a block means the same to it: rest, warm-up until stable, load, cores, sampler, supply, heat."""
    own, core = script(agent, "own", "sleep 0.02"), min(os.sched_getaffinity(0))
    options = {"idle_ms": 120, "load_ms": 300, "warmup": 1, "warmup_stable": 0.9, "cpus": core, "power_period_ms": 50,
               "stop_temp_dc": 450, "await_discharging_ms": 250, "discharging_sign": -1}  # fmt: skip

    def ran(**nodes: str) -> Ended:
        root = write_nodes(agent.folder / "root", battery(**nodes))
        return agent.call(argv(agent, own, **options), POCKETFARM_SYSROOT=str(root))

    ended = ran(current_now="-300000", temp="250")
    phases = {each.phase: each.end_ns - each.start_ns for each in ended.all("phase")}
    assert [*phases] == ["idle_before", "warmup", "load", "idle_after"]
    assert min(phases["idle_before"], phases["idle_after"]) >= 120e6 and phases["load"] >= 300e6
    counts = Counter(each.phase for each in ended.all("sample"))
    assert counts["warmup"] >= 5 and counts["timed"] > 1 and len(ended.all("power")) > 5
    assert {each.cpus for each in ended.all("process")} == {(core,)}
    assert ran(current_now="300000", temp="250").error.code == "power_contaminated"
    hot = ran(current_now="-300000", temp="455")
    assert len(hot.all("sample")) < len(ended.all("sample")) and "45.5 C" in str(hot.events)


def test_arguments_that_make_no_sense(agent: Agent) -> None:
    for words in (["exec"], ["exec", "--folder", "/tmp"], ["exec", "--folder", "/tmp", "--samples", "0", "--", "sh"],
                  ["exec", "--folder", "/tmp", "--variable", "x", "--", "sh"]):  # fmt: skip
        done = subprocess.run([str(agent.binary), *words], capture_output=True, text=True, timeout=30, check=False)
        assert done.returncode == 2 and "usage:" in done.stderr
