"""A line of blocks in one session on a virtual phone: each its own record, the phone prepared and put back once."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from orchestrator.model.errors import LeaseLost
from orchestrator.model.experiment import Workload
from orchestrator.model.live.lease import Assignment
from orchestrator.model.record import Outcome, Record
from orchestrator.system.config import Settings
from tests.waiting import LIMIT_S, eventually
from virtual_phones.faults import Garbage, KillAgent
from workers.connection.adb import AdbConnection
from workers.devices.admit import enrol_phone
from workers.devices.fleet import Fleet
from workers.engines import Engines, Host
from workers.execution import run_job
from workers.execution.run_job import Workbench, run_line
from workers.session import owner
from workers.session.conditions.awake import Awake
from workers.session.session import Session

from .conftest import Wiring
from .jobs import assignment_of, charge, ok

BRIEF = {"warmup": 0, "samples": 2}


class Bench:
    """Runs lines, and remembers in what order things happened."""

    def __init__(self, settings: Settings, lab: Wiring) -> None:
        self.bench = Workbench(settings, Fleet(), Engines(Host.alone(settings.state)), "worker-1")
        self.bench.fleet.enrol(*enrol_phone(lab.connection, settings))
        self.serial = lab.serial
        self.kept: list[Record] = []
        self.went_on: list[int] = []
        self.report: Callable[..., None] = lambda *_: None
        self.may_go_on: Callable[[Assignment], bool] = lambda _: True

    def line(self, blocks: int, sampling: dict[str, Any] = BRIEF, **conditions: Any) -> Assignment:
        first = assignment_of(self.serial, sampling, conditions)
        jobs = [first.job.with_block(number) for number in range(blocks)]
        every = [
            first.model_copy(update={"job_id": job.job_id, "job": job, "token": number})
            for number, job in enumerate(jobs, 1)
        ]
        return every[0].model_copy(update={"line": tuple(every[1:])})

    def __call__(self, line: Assignment, check: Callable[[], None] = lambda: None) -> list[Record]:
        run_line(line, self.bench, check, self.report, lambda record, _: self.kept.append(record), self._go_on)
        return self.kept

    def _go_on(self, to: Assignment) -> bool:
        self.went_on.append(to.token)
        return self.may_go_on(to)


@pytest.fixture
def bench(lab_settings: Settings, lab: Wiring, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setattr(run_job, "LINE_S", LIMIT_S)  # this machine may have other work
    monkeypatch.setattr(owner, "TTL_S", 3000.0)  # no claim is renewed meanwhile
    charge(lab, lab.phones.phones[0], lab.connection)
    gc.collect()
    gc.disable()
    try:
        yield Bench(lab_settings, lab)
        left = [each for each in gc.get_objects() if issubclass(type(each), Session)]  # a proxy would be asked
    finally:
        gc.enable()
    assert left == [], "a session is gone when it is over, not when garbage is searched for"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The commands that the phone is asked from now on."""
    found, service = list[str](), AdbConnection._service

    def counted(self: AdbConnection, what: str, command: str, deadline_s: float) -> Any:
        found.append(command)
        return service(self, what, command, deadline_s)

    monkeypatch.setattr(AdbConnection, "_service", counted)
    return found


def test_blocks_of_a_line_share_a_session(
    bench: Bench, lab: Wiring, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    put_back, restore = list[str](), Awake.restore

    def noted(self: Awake, *saved: Any) -> None:
        put_back.append(bench.kept[-1].job_id if bench.kept else "")
        restore(self, *saved)

    ok(bench(bench.line(1))[0])  # plan and inputs are on the phone from now on
    assert bench.kept.pop().session is None
    asked.clear()
    monkeypatch.setattr(Awake, "restore", noted)
    line = bench.line(4, screen_dimmed=True)
    records = bench(line)
    assert [ok(each).token for each in records] == [1, 2, 3, 4] and bench.went_on == [2, 3, 4]
    assert [(each.session.first, each.session.number) for each in records if each.session] == [
        (1, n) for n in range(1, 5)
    ]
    assert put_back == [line.every[2].job_id], "once, after the records of all blocks but the last were kept"
    times = {what: sum(what in each for each in asked) for what in ("ln -s", " stop --marker", "timeout 2147483647")}
    assert times == {"ln -s": 2, " stop --marker": 0, "timeout 2147483647": 1}, asked
    assert sum("sha256sum" in each for each in asked) == 1, "what is there is compared once a session"
    after = [each.count("mkdir -p") for each in asked if "df -k" in each][1:]
    assert after[-1] == 0 and set(after) == {0, 1}, "each prepares the next block, but the last"
    for record, following in pairwise(records):
        assert record.state_after is not None and record.state_after == following.state_before
        assert record.ended_at <= following.started_at + 0.05
        names = {proof.name: proof for proof in record.conditions}
        assert names["awake"].proven and "at the end Awake" in names["awake"].held
        assert names["screen"].proven and names["screen"].restored is None
    assert all(proof.restored for proof in records[-1].conditions if proof.name in ("awake", "screen"))
    assert lab.connection.shell(["ls", f"{lab.connection.folder}/runs"]).stdout == b""


def test_stale_agents_are_looked_for_unless_nobody_can_have_left_any(
    bench: Bench, lab: Wiring, asked: list[str], tmp_path: Path
) -> None:
    def looks() -> int:
        asked.clear()
        bench(bench.line(1))
        return sum(" stop --marker" in each for each in asked)

    assert [looks(), looks()] == [1, 0]
    with owner.owned(lab.connection, owner.claimant_of(lab_of(tmp_path), "another host")):
        pass
    assert [looks(), looks()] == [1, 0], "after another host's session"
    lab.phones.control.fault(lab.serial, Garbage())
    bench(bench.line(1))
    lab.mend()
    assert bench.kept[-1].outcome is not Outcome.OK
    assert [looks(), looks()] == [1, 0], "after a session that did not end well"
    bench.bench.orderly.take(lab.serial)
    assert looks() == 1, "after a worker that was started anew"


def lab_of(folder: Path) -> Path:
    (folder / "locks").mkdir()
    return folder


def trips(asked: list[str]) -> list[str]:
    """Return what was asked, but for what is about how far the agent is."""
    return [each for each in asked if any(what in each for what in ("sha256sum", "pocketfarm-agent run", "df -k"))]


def test_a_brief_block_takes_one_trip(bench: Bench, lab: Wiring, asked: list[str]) -> None:
    """The machine decides whether it is over in a moment: so in one of several lines."""
    ok(bench(bench.line(1))[0])

    def line() -> bool:
        asked.clear()
        bench.kept.clear()
        assert all(ok(each) for each in bench(bench.line(4)))
        return len(trips(asked)) == 2 + 4

    eventually(line)
    assert lab.connection.shell(["ls", f"{lab.connection.folder}/runs"]).stdout == b""


def test_a_block_that_lasts_is_not_looked_at_before_it_is_over(bench: Bench, asked: list[str]) -> None:
    long = {"warmup": 0, "samples": 20_000}
    ok(bench(bench.line(1, long))[0])
    asked.clear()
    first, second, third = [ok(each) for each in bench(bench.line(3, long))[1:]]
    assert len(trips(asked)) == 2 + 2 * 3
    for record, following in pairwise([first, second, third]):
        assert record.state_after is not None and record.state_after == following.state_before
        assert record.state_after.seen_at is not None and len(record.samples) == 20_000


def test_what_is_not_begun_is_handed_back(bench: Bench) -> None:
    bench.may_go_on = lambda to: to.token == 2
    first, second, *others = bench(bench.line(4))
    assert ok(first) and ok(second) and second.conditions[-1].restored is not False
    assert [(each.token, each.outcome, each.cause) for each in others] == [
        (3, Outcome.LOST, "handed_back"), (4, Outcome.LOST, "handed_back"),
    ]  # fmt: skip
    assert bench.went_on == [2, 3] and all(not each.samples for each in others)


def test_a_session_goes_on_only_after_a_block_that_measured(bench: Bench, lab: Wiring) -> None:
    struck = list[str]()

    def strike(phase: str, *_: object) -> None:
        if phase == "running" and not struck:
            struck.append(phase)
            lab.phones.control.fault(lab.serial, KillAgent())

    bench.report = strike
    first, second = bench(bench.line(2, {"warmup": 0, "samples": 100_000, "deadline": "60 s"}))
    assert first.outcome is Outcome.KILLED and second.cause == "handed_back" and bench.went_on == []


def test_a_closed_gate_and_a_plan_that_cannot_be_made_end_a_line(bench: Bench) -> None:
    line = bench.line(3)
    unknown = line.line[0].job.cell.model_copy(update={"workload": Workload(network="lenet", parameters={"size": 0})})
    strange = line.line[0].model_copy(update={"job": line.line[0].job.model_copy(update={"cell": unknown})})
    first, *others = bench(line.model_copy(update={"line": (strange, line.line[1])}))
    assert ok(first) and [each.cause for each in others] == ["handed_back"] * 2 and bench.went_on == []


def test_a_line_ends_after_its_time(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_job, "LINE_S", 0.0)
    first, second = bench(bench.line(2))
    assert ok(first) and second.cause == "handed_back"


def test_a_lost_lease_leaves_no_record_of_what_is_in_line(bench: Bench) -> None:
    """The ledger decides about it, when the lease is reaped."""

    def check() -> None:
        if bench.went_on:
            raise LeaseLost("token 2: another has the device", device=bench.serial)

    with pytest.raises(LeaseLost):
        bench(bench.line(3), check)
    assert [each.token for each in bench.kept] == [1]


def test_a_block_that_fails_in_mid_line_ends_it(bench: Bench, lab: Wiring) -> None:
    def spoil(to: Assignment) -> bool:
        if to.token == 2:
            lab.phones.control.fault(lab.serial, Garbage())
        return True

    bench.may_go_on = spoil
    try:
        first, second, third = bench(bench.line(3))
    finally:
        lab.mend()
    assert ok(first) and second.outcome is Outcome.LOST and second.cause != "handed_back"
    assert third.cause == "handed_back"
    assert lab.connection.shell(["ls", f"{lab.connection.folder}/runs"]).stdout == b"", "what was prepared is gone, too"
