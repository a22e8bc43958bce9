"""The course of a block: its phases, how long they last, and what it waits for."""

from __future__ import annotations

import fcntl
import os
import random
import subprocess
import threading
from itertools import pairwise
from pathlib import Path

import pytest

from .driver import TIMEOUT_S, Agent, Ended, read_events
from .phone_nodes import battery, write_nodes
from .plans import vector
from .test_control import await_text, finish, slow, small

MS = 1_000_000
STATUS = "sys/class/power_supply/battery/status"
CURRENT = "sys/class/power_supply/battery/current_now"


def phases(run: Ended) -> list[str]:
    return [phase.phase for phase in run.all("phase")]


def duration_ms(run: Ended, name: str) -> float:
    (phase,) = [phase for phase in run.all("phase") if phase.phase == name]
    return float((phase.end_ns - phase.start_ns) / MS)


def test_phases_follow_each_other(agent: Agent, api: str) -> None:
    options = ("--idle-ms", 150, "--warmup", 2, "--samples", 3, "--power-period-ms", 20)
    run = agent.run(small(api), {"x": vector(1)}, *options)
    assert run.code == 0
    assert phases(run) == ["idle_before", "warmup", "load", "idle_after"]
    told = run.all("phase")
    assert all(before.end_ns <= after.start_ns for before, after in pairwise(told))
    assert duration_ms(run, "idle_before") >= 150
    assert duration_ms(run, "idle_after") >= 150
    for each in told:
        assert 0 <= each.counts["cpu_ns"] <= (each.end_ns - each.start_ns) * (os.cpu_count() or 1)
    assert told[2].counts["cpu_ns"] > 0
    power = run.all("power")
    assert power[0].t_ns <= told[0].start_ns
    assert power[-1].t_ns >= told[-1].end_ns
    within = {"warmup": told[1], "timed": told[2]}
    for sample in run.all("sample"):
        phase = within[sample.phase]
        assert phase.start_ns <= sample.start_ns <= sample.start_ns + sample.duration_ns <= phase.end_ns


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--samples", 1), ["load"]),
        (("--samples", 0, "--warmup", 1), ["warmup"]),
        (("--samples", 0, "--layer-passes", 1), []),
        (("--samples", 0, "--warmup-stable", "0.5", "--load-ms", 1), ["warmup", "load"]),
    ],
)
def test_phases_only_of_what_was_asked(agent: Agent, options: tuple[object, ...], expected: list[str]) -> None:
    assert phases(agent.run(small("cpu"), {"x": vector(1)}, *options)) == expected


def test_load_lasts_as_long_as_asked(agent: Agent) -> None:
    run = agent.run(slow("cpu"), {"x": vector(1)}, "--samples", 1, "--load-ms", 300)
    assert duration_ms(run, "load") >= 300
    timed = [sample for sample in run.all("sample") if sample.phase == "timed"]
    assert [sample.index for sample in timed] == list(range(run.events[-1].samples))
    assert len(timed) > 1
    before_last = timed[-2]  # at its end the time was not over yet
    assert before_last.start_ns + before_last.duration_ns - timed[0].start_ns < 300 * MS


def test_load_has_as_many_samples_as_asked(agent: Agent) -> None:
    run = agent.run(small("cpu"), {"x": vector(1)}, "--samples", 40, "--load-ms", 1)
    assert run.events[-1].samples >= 40


def test_short_inferences_of_a_load_are_told_by_means(agent: Agent, seed: int) -> None:
    """A sample has as many runs as last what was asked by the fastest before; none overlap, a warm-up is single."""
    draw = random.Random(seed)
    least_us, stream = draw.randint(200, 2000), draw.choice([1, 3])
    options = ("--warmup", 3, "--samples", 5, "--load-ms", 20, "--inferences", stream, "--least-sample-us", least_us)
    run = agent.run(small(draw.choice(["cpu", "opencl"])), {"x": vector(1)}, *options)
    told, least = run.all("sample"), 1
    assert run.events[-1].samples == len(told) - 3
    for sample in told:
        assert sample.mean_of == (least if sample.phase == "timed" else 1) and sample.inferences == stream
        least = max(least, 1 + least_us * 1000 // max(1, sample.duration_ns))
    for one, two in pairwise(told):
        assert one.start_ns + (one.duration_ns - 1) * one.mean_of <= two.start_ns


def test_warm_up_goes_on_until_five_agree(agent: Agent) -> None:
    run = agent.run(slow("cpu"), {"x": vector(1)}, "--warmup", 2, "--warmup-stable", "0.5")
    durations = [sample.duration_ns for sample in run.all("sample") if sample.phase == "warmup"]
    spreads = [
        (max(five) - min(five)) / sorted(five)[2] for five in zip(*(durations[i:] for i in range(5)), strict=False)
    ]
    assert len(durations) >= 5
    assert all(spread > 0.5 for spread in spreads[:-1])
    if spreads[-1] > 0.5:  # a restless machine: then it must say so
        assert len(durations) == 62
        assert [warning.code for warning in run.all("warning")] == ["not_warm"]
    else:
        assert run.all("warning") == []


def test_warm_up_that_never_agrees_is_told(agent: Agent) -> None:
    """Five times to the nanosecond the same: that does not happen."""
    run = agent.run(slow("cpu"), {"x": vector(1)}, "--warmup", 1, "--warmup-stable", "0.000000001")
    assert run.code == 0
    assert len([sample for sample in run.all("sample") if sample.phase == "warmup"]) == 31
    (warning,) = run.all("warning")
    assert (warning.code, "31 inferences" in warning.message) == ("not_warm", True)
    assert phases(run) == ["warmup", "load"]


def test_block_waits_until_the_battery_discharges(agent: Agent) -> None:
    root = write_nodes(agent.folder, battery(status="Charging", current_now="412000"))
    process = agent.start(
        small("cpu"), {"x": vector(1)}, "--await-discharging-ms", 120_000, "--discharging-sign", -1, "--idle-ms", 1,
        "--journal", agent.folder / "journal", POCKETFARM_SYSROOT=root,
    )  # fmt: skip
    await_text(agent.folder / "journal", '"input"')
    (agent.folder / STATUS).write_text("Discharging\n")  # the current does not agree yet
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.5)
    assert '"phase"' not in (agent.folder / "journal").read_text()
    (agent.folder / CURRENT).write_text("-300000\n")
    run = finish(process)
    assert run.code == 0
    assert phases(run) == ["idle_before", "load", "idle_after"]


@pytest.mark.parametrize(
    ("nodes", "sign"),
    [
        (battery(status="Charging"), 0),
        (battery(status="Not charging"), 0),
        (battery(current_now="412000"), -1),
        (battery(current_now="0"), 1),
        ({}, 0),
    ],
)
def test_supply_that_stays_is_an_error(agent: Agent, nodes: dict[str, str], sign: int) -> None:
    options = ("--await-discharging-ms", 250, *(("--discharging-sign", sign) if sign else ()))
    run = agent.run(small("cpu"), {"x": vector(1)}, *options, POCKETFARM_SYSROOT=write_nodes(agent.folder, nodes))
    assert run.error.code == "power_contaminated"
    assert "250 ms" in run.error.message
    assert run.all("sample") == []


def test_discharging_without_a_known_sign(agent: Agent) -> None:
    root = write_nodes(agent.folder, battery(current_now="412000"))
    assert agent.run(small("cpu"), {"x": vector(1)}, "--await-discharging-ms", 5000, POCKETFARM_SYSROOT=root).code == 0


def test_idle_is_ended_by_sigterm(agent: Agent) -> None:
    journal = agent.folder / "journal"
    process = agent.start(small("cpu"), {"x": vector(1)}, "--idle-ms", 60_000, "--journal", journal)
    await_text(journal, '"input"')
    process.terminate()
    assert finish(process).error.code == "cancelled"


@pytest.mark.parametrize("options", [("--idle-ms", 60_000), ("--await-discharging-ms", 60_000), ("--load-ms", 60_000)])
def test_deadline_holds_in_every_phase(agent: Agent, options: tuple[object, ...]) -> None:
    run = agent.run(slow("cpu"), {"x": vector(1)}, *options, "--deadline-s", 0.6, POCKETFARM_SYSROOT=str(agent.folder))
    assert run.error.code == "deadline"


def test_run_goes_on_when_nobody_reads_any_more(agent: Agent) -> None:
    journal = agent.folder / "journal"
    process = agent.start(slow("cpu"), {"x": vector(1)}, "--load-ms", 700, "--idle-ms", 100, "--journal", journal)
    assert process.stdout and process.stderr
    process.stdout.readline()
    process.stdout.close()
    process.stderr.close()
    assert process.wait(TIMEOUT_S) == 0
    assert read_events(journal.read_text())[-1].event == "result"


def test_detached_block_outlives_its_starter(agent: Agent) -> None:
    """Its standard streams are closed and its shell is gone before the block begins, which waits for its slot."""
    journal, slot = agent.folder / "journal", agent.folder / "slot"
    argv = agent.argv(slow("cpu"), {"x": vector(1)}, "--detach", "--journal", journal, "--idle-ms", 30, "--load-ms", 30)
    with slot.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        process = subprocess.Popen(
            ["sh", "-c", '"$@"', "sh", *argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True, env=agent.environment({"POCKETFARM_SLOT": str(slot)}),
        )  # fmt: skip
        process.communicate(timeout=TIMEOUT_S)
    run = Ended(read_events(await_text(journal, '"result"')), 0, "")
    assert phases(run) == ["idle_before", "load", "idle_after"]


def test_slot_is_held_for_the_whole_block(agent: Agent, tmp_path: Path) -> None:
    """Two blocks at once on one slot: one begins its idle when the other has ended."""
    slot = str(tmp_path / "slot")
    argv = agent.argv(small("cpu"), {"x": vector(1)}, "--idle-ms", 150)
    runs: list[Ended] = []
    threads = [threading.Thread(target=lambda: runs.append(agent.call(argv, POCKETFARM_SLOT=slot))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT_S)
    first, second = sorted(runs, key=lambda run: int(run.all("phase")[0].start_ns))
    assert first.all("phase")[-1].end_ns <= second.all("phase")[0].start_ns
