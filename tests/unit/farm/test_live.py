"""The live view says who works on what, what waits and why, and how far the whole is."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from farm.cli import live
from farm.snapshot import Lane, Snapshot
from orchestrator.model.device import Device, DeviceFacts, DeviceState, Health, Source
from orchestrator.model.live import Phase, Progress

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
    return Snapshot(lanes, counts, {}, at)


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
        "galaxy_s7", "VIRTUAL", "3/12", "12.3", "opencl", "fp32", "#0", "running", "2/4", "7", "s",
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
    assert lines[-1] == "50/50 done (50 ok); 0 of 1 devices work"
    assert "\x1b" not in buffer.getvalue()


def test_foreign_words_are_not_markup() -> None:
    assert "[red]x[/]" in shown(snapshot(lane("a", health=Health.SICK, reason="[red]x[/]"), waiting=1))
