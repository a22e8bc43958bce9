"""Nights against a real ledger, Redis and scheduler, and a host whose devices take as long as the test says."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from redis import Redis

from farm.tasks.nightly import told_in
from orchestrator import acts
from orchestrator.acts import Door
from orchestrator.coordination.inventory import Inventory
from orchestrator.ledger import Ledger
from orchestrator.model.device import Health
from orchestrator.model.event import Sample
from orchestrator.model.live.lease import Assignment
from orchestrator.model.record import Outcome, Record
from orchestrator.nightly import Night, Told, load
from orchestrator.nightly.keeper import Keeper
from orchestrator.nightly.summary import summary
from orchestrator.system.config import Settings
from tests.integration.orchestrator.hosts import Host, answered
from tests.integration.orchestrator.sites import by, site
from tests.unit.orchestrator import make
from tests.waiting import eventually

from .conftest import Cli

SUITE = """
name: s
experiments: [e.yaml]
sides: {candidate: {axes: {tuned: false}}}
rounds: 6
most_rounds: 18
canary: 6
metrics: [latency]
budget: 60 s
schedule: "0 2 * * *"
"""
SLOWER = 1.08


def measured(assignment: Assignment) -> Record:
    """Five milliseconds, give or take half a percent, in each run the same; 8 % more for the candidate on device B."""
    job, serial = assignment.job, assignment.serial
    wave = job.experiment_id.split("-")[2:]  # without the part that is drawn
    chance = Random(f"{wave} {job.block} {job.cell.options.get('side')} {serial}")
    slow = SLOWER if (serial, job.cell.options.get("side")) == ("B", "candidate") else 1.0
    ns = round(5e6 * slow * chance.gauss(1.0, 0.005))
    samples = tuple(
        Sample(seq=i, t_ns=i, index=i, phase="timed", start_ns=i * 10**9, duration_ns=ns + i) for i in range(3)
    )
    return answered(assignment, Outcome.OK).model_copy(update={"samples": samples})


@pytest.fixture
def suite(host: Host, tmp_path: Path) -> Path:
    """A suite of one cell on devices A and B; the candidate is slower on B."""
    host.devices.append(make.device("B"))
    host.answer = measured
    (tmp_path / "e.yaml").write_text("name: e\nworkload: {network: lenet}\nmatrix: {backend: opencl}\n")
    path = tmp_path / "s.yaml"
    path.write_text(SUITE)
    return path


@pytest.fixture
def ledger(settings: Settings) -> Iterator[Ledger]:
    with Ledger(settings.ledger) as opened:
        yield opened


class Teller:
    def __init__(self) -> None:
        self.heard: list[Night] = []

    def __call__(self, night: Night) -> tuple[Told, ...]:
        self.hear(night)
        return (Told(to="test", at=0.0),)

    def hear(self, night: Night) -> None:
        self.heard.append(night)


@pytest.fixture
def teller() -> Teller:
    return Teller()


@pytest.fixture
def keeper(settings: Settings, ledger: Ledger, redis: Redis, teller: Teller) -> Callable[[], Keeper]:
    """A new keeper each time: none remembers anything."""
    return lambda: Keeper(site(settings, ledger, redis), by("farm", Door.SCHEDULE), Inventory(redis), teller)


def begun(keeper: Callable[[], Keeper], suite: Path) -> Night:
    now = time.time()
    return keeper().begin(load(suite), suite, now, now, scheduled=False)


def ended(keeper: Callable[[], Keeper], teller: Teller, count: int = 1) -> Night:
    def is_over() -> bool:
        keeper().turn(time.time())
        return len(teller.heard) == count

    eventually(is_over)
    assert teller.heard[-1].ended_at is not None, "whoever is told reads when it ended"
    return teller.heard[-1]


def test_phones_that_are_away_are_told(
    suite: Path, host: Host, keeper: Callable[[], Keeper], teller: Teller, ledger: Ledger
) -> None:
    """C never comes; B goes after some blocks, for good."""
    suite.write_text(SUITE.replace("budget: 60 s", "budget: 15 s\nexpected: [A, B, C]"))
    blocks = iter(range(1000))

    def leaves(assignment: Assignment) -> Record | None:
        if assignment.serial == "B" and next(blocks) >= 3:
            host.devices[1] = make.device("B", health=Health.OFFLINE, reason="unplugged")
        return measured(assignment)

    host.answer = leaves
    begun(keeper, suite)
    ended(keeper, teller)
    night = Night.model_validate_json(ledger.nights.of()[0].body)
    assert night.outcome == "partial"
    assert {each.device: each.reason for each in night.missing}["C"] == "it is not connected"
    assert any("blocks were cancelled" in text for text in night.problems), night.problems
    assert night.ended_at is not None and night.ended_at < night.ends_at, "it does not wait for it until morning"
    found = {row.compared.device: row.compared.verdict for row in night.rows}
    assert found == {"A": "same", "B": "unknown"}
    assert "PARTIAL" in summary(night) and "missing: C" in summary(night)


def test_nights_that_were_missed_and_a_suite_that_is_gone_are_told(
    suite: Path, keeper: Callable[[], Keeper], teller: Teller, ledger: Ledger
) -> None:
    asked = load(suite)
    ledger.nights.schedule(asked.name, str(suite), str(asked.schedule), asked.model_dump_json().encode())
    suite.unlink()
    keeper().turn(time.time() + 3 * 86400)
    keeper().turn(time.time() + 3 * 86400)
    assert [night.outcome for night in teller.heard] == ["not_run"] * 3
    assert all("DID NOT RUN" in summary(night) and "it was missed" in summary(night) for night in teller.heard)
    due = max(night.due_at for night in teller.heard) + 86400
    keeper().turn(due + 1)
    assert "cannot be run" in summary(teller.heard[-1]) and "s.yaml" in summary(teller.heard[-1])
    assert len(teller.heard) == 4


class Killed(BaseException):
    """The process is gone."""


class Mortal:
    """Dies at every write to the ledger, and when it tells: once before it, and then right after it."""

    def __init__(self, ledger: Ledger, teller: Teller, patch: pytest.MonkeyPatch) -> None:
        self.acts: list[str] = []
        self._dead: set[tuple[str, int]] = set()
        for owner, name in ((acts.experiments, "submit_jobs"), (ledger.nights, "save"), (teller, "hear")):
            patch.setattr(owner, name, self._act(name, getattr(owner, name)))

    def _act(self, name: str, write: Callable[..., object]) -> Callable[..., object]:
        def dying(*given: object, **more: object) -> object:
            key = name, self.acts.count(name)
            if key not in self._dead:
                self._dead.add(key)
                raise Killed
            self.acts.append(name)
            found = write(*given, **more)
            if name != "hear" or self.acts.count(name) == 1:
                raise Killed
            return found

        return dying


def test_a_slowdown_is_found_repeated_and_told_whoever_dies_before_or_after_any_act(
    suite: Path, keeper: Callable[[], Keeper], teller: Teller, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    night_id = begun(keeper, suite).night_id
    mortal = Mortal(ledger, teller, monkeypatch)

    def is_over() -> bool:
        with suppress(Killed):
            keeper().turn(time.time())
        return ledger.nights.one(night_id).over

    eventually(is_over)
    night = Night.model_validate_json(ledger.nights.one(night_id).body)
    own = [name for name, experiment in ledger.experiment_names().items() if experiment == "e"]
    assert own == [wave.experiment_id for wave in night.waves] and len(own) == 2, "nothing was submitted twice"
    assert mortal.acts.count("hear") == 3, "killed after telling, and before it could write so: rather twice than never"
    keeper().turn(time.time())
    assert mortal.acts.count("hear") == 3
    assert night.outcome == "complete", night.problems
    assert {row.compared.device: (row.compared.verdict, row.confirmed) for row in night.rows} == {
        "A": ("same", None), "B": ("different", True),
    }  # fmt: skip
    worse = next(row for row in night.rows if row.compared.device == "B")
    assert worse.compared.worse and worse.compared.method == "paired"
    assert worse.compared.ratio == pytest.approx(SLOWER, abs=0.02)
    assert worse.compared.options == {"tuned": "true|false"}, "what only told sides and parts apart is gone"
    repeat = [wave for wave in night.waves if wave.kind == "repeat"]
    assert [{serial for serial, _ in wave.cells or ()} for wave in repeat] == [{"B"}], "only what changed is repeated"
    assert "1 worse" in summary(night).splitlines()[0] and "B: lenet" in summary(night)
    assert any(job.job.role == "canary" for job in ledger.jobs(night.waves[0].experiment_id))


def test_the_commands_follow_schedule_and_show_and_a_killed_keeper_is_no_loss(
    suite: Path, settings: Settings, cli: Cli, ledger: Ledger
) -> None:
    def kept() -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-m", "farm.tasks.beat"], stderr=subprocess.DEVNULL)

    processes = [kept()]

    def replace_in_mid_night() -> None:
        eventually(lambda: bool(ledger.counts().get("ok")))
        processes[0].kill()
        processes.append(kept())

    killing = threading.Thread(target=replace_in_mid_night)
    killing.start()
    try:
        code, out, _ = cli("nightly", str(suite), "--json")
    finally:
        killing.join()
        for process in processes:
            process.terminate()
            process.wait(20)
    assert [process.returncode for process in processes] == [-signal.SIGKILL, 0]
    night = json.loads(out)
    assert code == 1 and night["counts"]["worse"] == 1 and night["outcome"] == "complete"
    page, told = sorted(told_in(settings.state).iterdir())
    assert "1 worse" in told.read_text() and [each["to"] for each in night["told"]] == [str(told), str(page)]
    assert "What got worse" in page.read_text() and not any(each["error"] for each in night["told"])
    assert "worse: B: lenet" in cli("nightly", "status", "s")[1]
    code, out, _ = cli("nightly", "schedule", str(suite), "--json")
    assert code == 0 and json.loads(out)["cron"] == "0 2 * * *"
    listed = json.loads(cli("nightly", "list", "--json")[1])
    assert [each["night_id"] for each in listed["nights"]] == [night["night_id"]]
    assert listed["schedules"][0]["suite"] == "s" and listed["schedules"][0]["next"] > time.time()
    assert cli("nightly", "unschedule", "s")[0] == 0
    code, _, err = cli("nightly", "unschedule", "s")
    assert code == 1 and "those that do: none" in err
    assert cli("nightly", "status", "other")[0] == 1
