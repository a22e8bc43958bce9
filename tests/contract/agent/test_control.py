"""A run is watched and ended, and survives its shell."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import random
import signal
import subprocess
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from kernels.plan.model import BufferArgument, Bundle, Dispatch, IntArgument, Parameter, Program

from .driver import TIMEOUT_S, Agent, Ended, read_events
from .phone_nodes import write_nodes
from .plans import Draft, binary_program, combine, vector

FOREVER = ("--samples", 1_000_000)


def small(api: str) -> Bundle:
    return Draft(api, [combine("x", "x", "y")]).bundle()


def slow(api: str) -> Bundle:
    """An inference of some milliseconds, so that an endless run does not write a million lines."""
    return Draft(api, [combine("x", "x", "y")] * 2000).bundle()


def finish(process: subprocess.Popen[str]) -> Ended:
    out, err = process.communicate(timeout=TIMEOUT_S)
    return Ended(read_events(out), process.returncode, err)


def await_text(file: Path, text: str) -> str:
    until = time.monotonic() + TIMEOUT_S
    while time.monotonic() < until:
        if file.exists() and text in (content := file.read_text()):
            return content
        time.sleep(0.01)
    raise AssertionError(f"{text!r} did not come in {file}")


def test_deadline(agent: Agent, api: str) -> None:
    run = agent.run(slow(api), {"x": vector(1)}, *FOREVER, "--deadline-s", 1.5)
    assert run.error.code == "deadline"
    assert "1.5 s" in run.error.message


def test_end_while_the_driver_hangs(agent: Agent) -> None:
    """One dispatch that lasts for hours: the agent's main thread waits inside the driver."""
    journal = agent.folder / "journal"
    spin = Program(
        id="spin", kernel="spin", work_group=(1, 1, 1), opencl=binary_program("opencl").opencl,
        parameters=(Parameter(name="dst", kind="buffer", access="readwrite"), Parameter(name="rounds", kind="i32")),
    )  # fmt: skip
    step = Dispatch(
        program="spin", layer="spin", work_items=(1, 1, 1),
        arguments=(BufferArgument(buffer="y"), IntArgument(i32=2**30)),
    )  # fmt: skip
    bundle = Draft("opencl", [step], programs=[spin]).bundle()
    process = agent.start(bundle, {"x": vector(1)}, "--journal", journal)
    await_text(journal, '"input"')
    time.sleep(0.5)
    process.terminate()
    run = finish(process)
    assert run.error.code == "cancelled"
    assert run.all("sample") == []


def test_sigterm(agent: Agent, api: str) -> None:
    journal = agent.folder / "journal"
    process = agent.start(slow(api), {"x": vector(1)}, *FOREVER, "--journal", journal)
    await_text(journal, '"sample"')
    process.send_signal(signal.SIGTERM)
    run = finish(process)
    assert (run.error.code, run.error.message) == ("cancelled", "ended by SIGTERM")
    assert read_events(journal.read_text()) == run.events


def test_detached_run_survives_hangup_and_finishes(agent: Agent) -> None:
    journal, slot = agent.folder / "journal", agent.folder / "slot"
    with slot.open("w") as held:  # it cannot finish before the hangup
        fcntl.flock(held, fcntl.LOCK_EX)
        done = subprocess.run(
            agent.argv(small("cpu"), {"x": vector(1)}, "--detach", "--journal", journal, "--samples", 20_000),
            capture_output=True, text=True, timeout=TIMEOUT_S, check=True,
            env=agent.environment({"POCKETFARM_SLOT": str(slot)}),
        )  # fmt: skip
        pid = json.loads(done.stdout)["pid"]
        assert read_first(journal)["pid"] == pid
        os.kill(pid, signal.SIGHUP)
        assert os.getsid(pid) == pid
    run = Ended(read_events(await_text(journal, '"result"')), 0, "")
    assert run.events[-1].samples == 20_000
    np.testing.assert_array_equal(run.output(), vector(1) * 2)


def read_first(journal: Path) -> dict[str, object]:
    first: dict[str, object] = json.loads(journal.read_text().splitlines()[0])
    return first


def test_detached_run_tells_its_error_in_the_journal(agent: Agent) -> None:
    journal = agent.folder / "journal"
    argv = agent.argv(agent.folder / "absent", {}, "--detach", "--journal", journal)
    done = subprocess.run(argv, capture_output=True, timeout=TIMEOUT_S, check=False, env=agent.environment({}))
    assert done.returncode == 0
    assert read_events(await_text(journal, '"error"'))[-1].code == "io"


def follow(agent: Agent, journal: Path, offset: int, wait_ms: int) -> tuple[bytes, int]:
    known = ["--offset", str(offset)] if offset else []
    argv = [agent.binary, "follow", "--journal", journal, "--wait-ms", str(wait_ms), *known]
    done = subprocess.run(argv, capture_output=True, timeout=TIMEOUT_S, check=False)
    return done.stdout, done.returncode


@pytest.mark.parametrize("end", ["result", "SIGTERM", "SIGKILL"])
def test_who_follows_a_run_waits_for_its_end_and_reads_the_rest(agent: Agent, end: str, seed: int) -> None:
    journal, draw = agent.folder / "journal", random.Random(seed)
    assert follow(agent, journal, 0, 1) == (b"", 1)  # nobody writes one
    options = ("--samples", 3, "--idle-ms", 300) if end == "result" else FOREVER
    process = agent.start(slow("cpu"), {"x": vector(1)}, "--journal", journal, *options)
    await_text(journal, '"hello"')
    content, code = follow(agent, journal, 0, draw.randint(1, 50))
    if end != "result":
        assert code == 3
        time.sleep(draw.uniform(0, 0.05))
        signal_at(process, end, draw.uniform(0, 0.2))  # before the wait or in it
    while code == 3:
        more, code = follow(agent, journal, len(content), 10_000)
        content += more
    process.communicate(timeout=TIMEOUT_S)
    assert code == 0 and content == journal.read_bytes()
    if end != "SIGKILL":
        assert read_events(content.decode())[-1].event == {"result": "result", "SIGTERM": "error"}[end]
    assert follow(agent, journal, draw.randint(1, 10), 1)[1] == 0  # also long after


def signal_at(process: subprocess.Popen[str], name: str, wait_s: float) -> None:
    threading.Timer(wait_s, process.send_signal, [signal.Signals[name]]).start()


def test_stop_ends_agents_by_marker(agent: Agent) -> None:
    bundle = agent.folder / "plan"
    slow("cpu").write(bundle)
    started = {}
    for marker in (f"{agent.folder}/a/1", f"{agent.folder}/a/2", f"{agent.folder}/b/1"):
        journal = agent.folder / marker.replace("/", "_")
        options = (*FOREVER, "--marker", marker, "--journal", journal)
        started[marker] = agent.start(bundle, {}, "--input", f"x={x_file(agent)}", *options)
        await_text(journal, '"sample"')
    stopped = agent.plain("stop", "--marker-prefix", f"{agent.folder}/a/")
    assert (stopped.returncode, stopped.stdout) == (0, "2\n")
    last = started.pop(f"{agent.folder}/b/1")
    assert [finish(process).error.code for process in started.values()] == ["cancelled", "cancelled"]
    assert last.poll() is None
    assert agent.plain("stop", "--marker-prefix", f"{agent.folder}/").stdout == "1\n"
    assert finish(last).error.code == "cancelled"


def test_stop_ends_the_agents_of_its_own_phone_only(agent: Agent) -> None:
    """Virtual phones of two farms may have one name, and one /proc."""
    slow("cpu").write(agent.folder / "plan")
    marker, phone, journal = f"{agent.folder}/1", str(agent.folder / "phone"), agent.folder / "journal"
    options = (*FOREVER, "--marker", marker, "--journal", journal)
    inside = agent.start(agent.folder / "plan", {}, "--input", f"x={x_file(agent)}", *options, POCKETFARM_SYSROOT=phone)
    await_text(journal, '"sample"')
    assert agent.plain("stop", "--marker-prefix", marker).stdout == "0\n"
    assert agent.plain("stop", "--marker-prefix", marker, POCKETFARM_SYSROOT=f"{phone}-2").stdout == "0\n"
    assert inside.poll() is None
    assert agent.plain("stop", "--marker-prefix", marker, POCKETFARM_SYSROOT=phone).stdout == "1\n"
    assert finish(inside).error.code == "cancelled"


def test_stop_while_processes_end(agent: Agent) -> None:
    """A file of /proc whose process has just been waited for can be opened, and then not be read."""
    churn = "while :; do for i in 1 2 3 4 5 6; do /bin/true & done; wait; done"
    with contextlib.ExitStack() as ending:
        for _ in range(3):
            process = ending.enter_context(subprocess.Popen(["sh", "-c", churn]))
            ending.callback(process.kill)
        for _ in range(40):
            done = agent.plain("stop", "--marker-prefix", f"{agent.folder}/")
            assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr


def test_stop_where_a_process_cannot_be_read(agent: Agent) -> None:
    """The same for certain: reading a folder fails with another cause, in the same place."""
    script = """mount -t tmpfs none /proc && mkdir -p /proc/11/cmdline /proc/12/environ && cd /proc/12 &&
        printf 'pocketfarm-agent\\0run\\0--marker\\0nobody\\0' >cmdline && exec "$@" """
    argv = [str(agent.binary), "stop", "--marker-prefix", "somebody"]
    done = subprocess.run(
        ["unshare", "--map-root-user", "--mount", "sh", "-c", script, "sh", *argv],
        capture_output=True, text=True, timeout=TIMEOUT_S, check=False, env=agent.environment({}),
    )  # fmt: skip
    if "mount" in done.stderr or "unshare" in done.stderr:
        pytest.skip(f"no mount namespace here: {done.stderr.strip()}")
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr


def test_an_agent_that_gets_no_memory_says_so(agent: Agent) -> None:
    """Whatever it lacks memory for, a thread or its own data: the last line tells, and no signal ends it."""
    argv = agent.argv(small("cpu"), {"x": vector(1)}, "--threads", 8, "--power-period-ms", 10)
    codes = set()
    for mebibytes in range(8, 130, 6):
        done = subprocess.run(
            ["prlimit", f"--as={mebibytes << 20}", *argv],
            capture_output=True, text=True, timeout=TIMEOUT_S, check=False, env=agent.environment({}),
        )  # fmt: skip
        assert done.returncode in (0, 1), f"{mebibytes} MiB: {done.returncode}, {done.stdout[-300:]}{done.stderr}"
        ended = Ended(read_events(done.stdout), done.returncode, done.stderr)
        codes.add(ended.error.code if ended.code else "ok")
    assert codes == {"out_of_memory", "ok"}


def x_file(agent: Agent) -> Path:
    file = agent.folder / "vector.bin"
    if not file.exists():
        vector(1).tofile(file)
    return file


def test_journal_on_a_full_disk(agent: Agent) -> None:
    run = agent.run(small("cpu"), {"x": vector(1)}, "--journal", "/dev/full")
    assert run.error.code == "storage_full"
    assert "/dev/full" in run.error.message


def test_last_words_fit_on_a_full_disk(agent: Agent) -> None:
    """A detached agent has nothing but its journal: the line that says why it ended must still fit."""
    argv = agent.argv(slow("cpu"), {"x": vector(1)}, *FOREVER, "--journal", "small/journal")
    (agent.folder / "small").mkdir()
    script = 'mount -t tmpfs -o size=160k none small && "$@" >/dev/null; cat small/journal'
    done = subprocess.run(
        ["unshare", "--map-root-user", "--mount", "sh", "-c", script, "sh", *argv],
        capture_output=True, text=True, timeout=TIMEOUT_S, check=False, cwd=agent.folder, env=agent.environment({}),
    )  # fmt: skip
    if not done.stdout and ("mount" in done.stderr or "unshare" in done.stderr):
        pytest.skip(f"no mount namespace here: {done.stderr.strip()}")
    assert read_events(done.stdout)[-1].code == "storage_full"


def test_journal_that_cannot_be_made(agent: Agent) -> None:
    argv = agent.argv(small("cpu"), {"x": vector(1)}, "--journal", agent.folder / "absent" / "journal")
    done = subprocess.run(
        argv, capture_output=True, text=True, timeout=TIMEOUT_S, check=False, env=agent.environment({})
    )
    assert done.returncode == 1
    assert json.loads(done.stdout)["code"] == "io"


def test_slot_is_waited_for_outside_the_deadline(agent: Agent) -> None:
    slot = agent.folder / "slot"
    with slot.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        options = ("--deadline-s", 3, "--journal", agent.folder / "journal")
        process = agent.start(small("cpu"), {"x": vector(1)}, *options, POCKETFARM_SLOT=str(slot))
        await_text(agent.folder / "journal", '"hello"')
        time.sleep(3.2)
        assert process.poll() is None
    run = finish(process)
    assert run.code == 0
    first = run.all("setup")[0]
    assert first.step == "slot"
    assert first.duration_ns > 2e9


def test_sigterm_while_waiting_for_the_slot(agent: Agent) -> None:
    slot, journal = agent.folder / "slot", agent.folder / "journal"
    with slot.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        process = agent.start(small("cpu"), {"x": vector(1)}, "--journal", journal, POCKETFARM_SLOT=str(slot))
        await_text(journal, '"hello"')
        process.terminate()
        assert finish(process).error.code == "cancelled"


@pytest.mark.parametrize(
    "words",
    [
        ["launch"], ["run"], ["run", "--plan"], ["run", "--plan", "x", "--samples", "-1"],
        ["run", "--plan", "x", "--typo"],
        ["run", "--plan", "x", "--deadline-s", "nan"], ["run", "--plan", "x", "--samples", "99999999999999999999"],
        ["run", "--plan", "x", "--detach"], ["run", "--plan", "x", "--samples", "0"], ["stop"],
        ["stop", "--marker-prefix", ""], ["follow", "--journal", "x"],
        ["follow", "--wait-ms", "5"], ["run", "--plan", "x", "--input", "novalue"],
        ["run", "--plan", "x", "--warmup-stable", "1.5"], ["run", "--plan", "x", "--discharging-sign", "0"],
        ["run", "--plan", "x", "--samples", "0", "--idle-ms", "9"], ["probe", "--cpus", "0"],
        ["run", "--plan", "x", "--cpus", ""],
        ["burn", "--steps", "0,1"], ["burn", "--step-ms", "5"], ["burn", "--steps", "0,,1", "--step-ms", "5"],
        ["burn", "--steps", "1,", "--step-ms", "5"], ["burn", "--steps", "1,-1", "--step-ms", "5"],
    ],
)  # fmt: skip
def test_usage(agent: Agent, words: list[str]) -> None:
    done = agent.plain(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert "usage: pocketfarm-agent" in done.stderr


def test_version(agent: Agent) -> None:
    done = agent.plain("version")
    assert done.returncode == 0
    assert json.loads(done.stdout)["schema_version"] == 1


def test_time_asleep_is_never_below_zero(agent: Agent) -> None:
    """It is the difference of two estimates, and each may be a little off."""
    phone, journal = write_nodes(agent.folder, {"proc/suspended_ns": "5000000000"}), agent.folder / "journal.jsonl"
    burning = subprocess.Popen(
        [agent.binary, "burn", "--steps", "0,0", "--step-ms", "500", "--journal", journal],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=agent.environment({"POCKETFARM_SYSROOT": phone}),
    )  # fmt: skip
    await_text(journal, '"phase"')
    write_nodes(agent.folder, {"proc/suspended_ns": "0"})
    assert finish(burning).one("result").suspended_ns == 0
