"""The live view says who works on what, what waits and why, and how far the whole is."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from farm.cli.experiments import live
from orchestrator.answers import Wait, explain, reason_lines
from orchestrator.answers.fleet import Lane, Snapshot
from orchestrator.answers.waiting import QUEUED, UNKNOWN
from orchestrator.ledger.rows import WaitingGroup
from orchestrator.model.device import Device, DeviceFacts, DeviceState, Health, Source
from orchestrator.model.live.announcement import Phase, Progress
from orchestrator.model.live.waiting import WaitKind, WaitReason

NOW = 1_000_000.0


def lane(
    serial: str,
    phase: Phase | None = None,
    *,
    done: int = 0,
    health: Health = Health.READY,
    reason: str = "",
    leased: bool = False,
    why: str = "",
    source: Source = Source.VIRTUAL,
    jobs: tuple[int, int] = (0, 0),
) -> Lane:
    facts = DeviceFacts(serial=serial, host="h", kind="phone", source=source, profile="galaxy_s7")
    device = Device(facts=facts, state=DeviceState(health=health, reason=reason))
    progress = None
    if phase:
        progress = Progress(
            serial=serial,
            job_id="j",
            attempt=1,
            token=1,
            label="lenet opencl fp32 #0",
            phase=phase,
            done=done,
            total=4,
            since=NOW - 7,
            last_ms=12.34 if done else None,
        )
    return Lane(device, progress, leased, why, *jobs)


def snapshot(*lanes: Lane, at: float = NOW, **counts: int) -> Snapshot:
    return Snapshot(lanes, counts, at=at)


def shown(of: Snapshot, pace: live.Pace | None = None) -> str:
    buffer = StringIO()
    Console(file=buffer, width=150).print(live.render(of, "first", pace or live.Pace()))
    return buffer.getvalue()


def row(text: str, serial: str) -> str:
    return next(line.rstrip() for line in text.splitlines() if line.startswith(serial + " "))


def test_each_device_says_what_it_does() -> None:
    text = shown(
        snapshot(
            lane("runs", "running", done=2, jobs=(3, 12)),
            lane("turn", "waiting"),
            lane("real", "waiting", source=Source.PHONE),
            lane("builds", "compiling"),
            lane("off", health=Health.OFFLINE, reason="unplugged"),
            lane("hot", why="battery 41.0 C is above 40.0 C"),
            lane("soon", leased=True),
            lane("idle"),
            lane("ended", jobs=(2, 2)),
            lane("next", jobs=(1, 2)),
            ok=3,
            failed=1,
            waiting=5,
            running=1,
        )
    )
    assert "4/10" in text
    assert "3 ok" in text
    assert "1 failed" in text
    assert "5 jobs wait" in text
    assert row(text, "runs").split()[1:] == [
        "galaxy_s7", "VIRTUAL", "3/12", "12.3", "lenet", "opencl", "fp32", "#0", "running", "2/4", "7", "s",
    ]  # fmt: skip
    assert row(text, "turn").endswith("waits its turn after galaxy_s7 7 s")
    assert row(text, "real").endswith("waits for the device 7 s")
    assert "VIRTUAL" not in row(text, "real")
    assert "compiling" in row(text, "builds")
    assert "offline unplugged" in row(text, "off")
    assert "waits battery 41.0 C" in row(text, "hot")
    assert "starting" in row(text, "soon")
    assert "free" in row(text, "idle")
    assert row(text, "ended").endswith("done")
    assert row(text, "next").endswith("between jobs")


def test_a_long_reason_is_folded_and_not_cut() -> None:
    reason = " ".join(f"word{i}" for i in range(40))
    text = shown(snapshot(lane("a", health=Health.OFFLINE, reason=reason)))
    assert "word39" in text
    assert max(map(len, text.splitlines())) <= 150


def test_the_end_is_predicted_from_what_was_seen() -> None:
    pace = live.Pace()
    assert pace.all_left_s(snapshot(at=0.0, ok=2, waiting=8)) is None
    assert pace.all_left_s(snapshot(at=10.0, ok=6, waiting=4)) is None
    assert pace.all_left_s(snapshot(at=20.0, ok=7, waiting=3)) == pytest.approx(12.0)
    assert pace.all_left_s(snapshot(at=30.0, ok=10)) is None


def test_the_end_of_each_device_is_predicted() -> None:
    pace = live.Pace()
    shown(snapshot(lane("a", jobs=(1, 9)), lane("b", jobs=(0, 3)), at=0.0), pace)
    text = shown(snapshot(lane("a", jobs=(4, 9)), lane("b", jobs=(1, 3)), at=60.0), pace)
    assert "4/9" in row(text, "a") and "1:40" in row(text, "a")
    assert ":" not in row(text, "b")


def test_without_a_terminal_there_are_a_few_plain_lines() -> None:
    buffer = StringIO()
    console = Console(file=buffer, width=40)
    with live.view(console, "first") as show:
        for second in range(100):
            show(snapshot(lane("a", "running"), at=float(second), ok=second // 2, waiting=50 - second // 2))
        show(snapshot(lane("a"), at=100.0, ok=50))
    lines = buffer.getvalue().splitlines()
    assert 3 <= len(lines) <= 12
    assert lines[-1] == "50/50 done (50 ok); 0 of 1 device busy"
    assert "\x1b" not in buffer.getvalue()


def waits(text: str, jobs: int = 18, kind: WaitKind = WaitKind.BATTERY) -> tuple[Wait, ...]:
    return (Wait("first-1", ("a",), jobs, WaitReason(kind=kind, text=text)),)


def test_without_a_terminal_a_job_that_waits_says_why_and_not_too_often() -> None:
    buffer = StringIO()
    with live.view(Console(file=buffer, width=40), "first") as show:
        for second in range(4 * 3600):
            level = f"battery at {50 + second // 720} %, the experiment wants at least 70 %"
            show(replace(snapshot(lane("a"), at=float(second), ok=18, waiting=18), waits=waits(level)))
        show(
            replace(
                snapshot(lane("a"), at=4 * 3600.0, ok=18, waiting=18), waits=waits("offline", kind=WaitKind.OFFLINE)
            )
        )
    lines = buffer.getvalue().splitlines()
    assert lines[0] == (
        "18/36 done (18 ok); 0 of 1 device busy; "
        "18 wait (battery): a: battery at 50 %, the experiment wants at least 70 %"
    )
    assert lines[-1].endswith("18 wait (offline): a: offline"), "another reason is news"
    assert 20 <= len(lines) <= 40, "four hours without news"


def test_without_a_terminal_a_night_says_how_far_it_is_every_ten_seconds() -> None:
    buffer, second = StringIO(), 0.0
    with live.status_line(Console(file=buffer, width=40), lambda: second) as show:
        for number in range(60):
            second = float(number)
            show(f"lenet, first: {number // 20} of 3 blocks")
    assert buffer.getvalue().splitlines() == [f"lenet, first: {number} of 3 blocks" for number in range(3)]


def test_reasons_of_many_devices_take_one_line_a_kind() -> None:
    many = [Wait("e-1", (f"d{i}",), 2, WaitReason(kind=WaitKind.BUSY, text=f"busy with {i}")) for i in range(400)]
    any_of = WaitReason(kind=WaitKind.QUARANTINED, text="x: quarantined; y: offline")
    assert reason_lines([*many, Wait("e-2", ("x", "y"), 3, any_of)]) == [
        "800 wait (busy): d0: busy with 0; d1: busy with 1; and 398 more",
        "3 wait (quarantined): x: quarantined; y: offline",
    ]
    drained = WaitReason(kind=WaitKind.DRAINING, text="host vm is being drained")
    assert reason_lines([Wait("e-1", (f"d{i}",), 2, drained) for i in range(5)]) == [
        "10 wait (draining): d0, d1 and 3 more: host vm is being drained"
    ]


def test_every_waiting_job_has_a_reason_once() -> None:
    battery = WaitReason(kind=WaitKind.BATTERY, text="battery at 5 %")
    pause = WaitReason(kind=WaitKind.RETRY, text="until 10:00:00")
    group = WaitingGroup("e-1", ("A",), 5, ("j1", "j2"))
    found = {wait.reason: wait.jobs for wait in explain([group], {"j1": pause, "j2": battery})}
    assert found == {pause: 1, battery: 4}, "a pause is of one job, a battery of all"
    assert {wait.reason: wait.jobs for wait in explain([group], {"j1": pause, "j2": pause})} == {pause: 2, QUEUED: 3}
    nobody = WaitingGroup("e-1", ("A",), 5, ())
    assert [(wait.jobs, wait.reason) for wait in explain([nobody], {})] == [(5, QUEUED)]
    assert [(wait.jobs, wait.reason) for wait in explain([nobody], None)] == [(5, UNKNOWN)]


def test_foreign_words_are_not_markup() -> None:
    assert "[red]x[/]" in shown(snapshot(lane("a", health=Health.SICK, reason="[red]x[/]"), waiting=1))
