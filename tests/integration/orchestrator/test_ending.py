"""The end of an experiment: against runs whose end is known, block for block, and against a real ledger."""

from __future__ import annotations

import heapq
import random
import time
from statistics import mean, median

import pytest
from redis import Redis
from sqlalchemy import update

from orchestrator.answers.ending import Ending, ending, when_it_ends
from orchestrator.ledger import Ledger, Outlook, UnderWay, Work
from orchestrator.ledger.tables import ATTEMPTS
from orchestrator.model.device import Device, Health
from orchestrator.model.record import Outcome
from orchestrator.spec.expansion.expand import expand
from orchestrator.system.config import Settings
from tests.unit.orchestrator import make

from .hosts import answered

NOW = 1e9


class History:
    """A farm whose blocks last a time of their own on each device, give or take a fifth; some have ended."""

    def __init__(self, seed: int, blocks: int = 30, ended: int = 5) -> None:
        self.chance = random.Random(seed)
        self.serials = [f"S{n}" for n in range(self.chance.randint(1, 5))]
        self.cells = [f"c{n}" for n in range(self.chance.randint(1, 3))]
        pace = {serial: self.chance.uniform(20, 90) for serial in self.serials}
        self.mean_s = {(c, s): pace[s] * self.chance.uniform(0.5, 2) for c in self.cells for s in self.serials}
        self.is_any = self.chance.random() < 0.5
        choices = [tuple(self.serials)] if self.is_any else [(serial,) for serial in self.serials]
        self.work = tuple(Work(choice, cell, blocks) for choice in choices for cell in self.cells)
        self.took_s = {key: tuple(self.lasts_s(*key) for _ in range(ended)) for key in self.mean_s}

    def lasts_s(self, cell_id: str, serial: str) -> float:
        return self.mean_s[cell_id, serial] * self.chance.uniform(0.8, 1.2)

    def end_s(self) -> float:
        """One block after the other, the cells in turn, on whichever device is free first."""
        queues = {each.candidates: [] for each in self.work}  # type: dict[tuple[str, ...], list[str]]
        for block in range(max(each.blocks for each in self.work)):
            for each in self.work:
                queues[each.candidates] += [each.cell_id] * (block < each.blocks)
        free, end_s = [(0.0, serial) for serial in self.serials], 0.0
        while free:
            at_s, serial = heapq.heappop(free)
            queue = next((q for choice, q in queues.items() if serial in choice and q), None)
            if queue is not None:
                done_s = at_s + self.lasts_s(queue.pop(0), serial)
                end_s = max(end_s, done_s)
                heapq.heappush(free, (done_s, serial))
        return end_s

    def outlook(self, **more: object) -> Outlook:
        fields = {"took_s": self.took_s, "work": self.work, "under_way": (), "rivals": {}, "held": 0, **more}
        return Outlook(**fields)  # type: ignore[arg-type]

    @property
    def devices(self) -> list[Device]:
        return [make.device(serial) for serial in self.serials]


def test_the_end_is_in_the_range_and_near_the_middle() -> None:
    """Nine tenths of 60 histories should be in the range; fewer than three quarters would be no accident."""
    inside, off, wide = [], [], []
    for seed in range(60):
        history = History(seed)
        found, end_s = ending(history.outlook(), history.devices, NOW, "e"), history.end_s()
        inside.append(found.earliest - NOW <= end_s <= found.latest - NOW)
        off.append(abs(found.at - NOW - end_s) / end_s)
        wide.append((found.latest - found.earliest) / end_s)
    assert mean(inside) > 0.75
    assert median(off) < 0.05 and max(off) < 0.2
    assert median(wide) < 0.2, "a range that says nothing"


def test_many_blocks_cost_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    from orchestrator.figures import block_times

    steps = []
    lasts = block_times.Drawn.lasts_s
    monkeypatch.setattr(
        block_times.Drawn, "lasts_s", lambda self, *by: steps.append(1) or lasts(self, *by)  # type: ignore[func-returns-value]
    )  # fmt: skip
    history = History(1, blocks=100_000)
    found = ending(history.outlook(), history.devices, NOW, "e")
    assert len(steps) < 5000 and found.at - NOW == pytest.approx(History(1, blocks=5000).end_s() * 20, rel=0.1)


def test_a_device_counts_from_when_it_is_free_and_others_take_their_part() -> None:
    took_s = {("c", "A"): (10.0, 10.0, 10.0)}
    outlook = Outlook(took_s, (Work(("A",), "c", 6),), (), {}, 0)

    def at_s(found: Outlook, **state: object) -> float:
        return ending(found, [make.device("A", **state)], NOW, "e").at - NOW

    assert at_s(outlook) == pytest.approx(60)
    assert at_s(outlook, ready_at=NOW + 100) == pytest.approx(160)
    assert at_s(outlook, health=Health.HELD, ready_at=NOW + 100) == pytest.approx(160)
    under_way = (UnderWay("A", "c", is_own=True, started_at=NOW - 4),)
    assert at_s(Outlook(took_s, outlook.work, under_way, {}, 0)) == pytest.approx(66)
    shared = Outlook(took_s, outlook.work, (), {"A": 1}, 2)
    assert at_s(shared) == pytest.approx(120)
    text = ending(shared, [make.device("A")], NOW, "e").text
    assert "another experiment waits for its devices" in text and "without jobs that may follow by results" in text


def test_a_cell_is_known_by_the_device_then_by_its_model_then_by_the_experiment() -> None:
    took_s = {("c", "A"): (10.0,) * 3, ("d", "A"): (40.0,) * 2}

    def at_s(cell_id: str, serial: str, model: str) -> float:
        devices = [_of_model("A", "pixel"), _of_model(serial, model)]
        found = ending(Outlook(took_s, (Work((serial,), cell_id, 1000),), (), {}, 0), devices, NOW, "e")
        return (found.at - NOW) / 1000

    assert at_s("c", "A", "pixel") == pytest.approx(10)
    assert at_s("c", "B", "pixel") == pytest.approx(10)
    for other in (at_s("c", "B", "galaxy"), at_s("d", "A", "pixel")):
        assert other == pytest.approx(mean([10.0] * 3 + [40.0] * 2), rel=0.6) and other != pytest.approx(10)


def _of_model(serial: str, model: str) -> Device:
    device = make.device(serial)
    return device.model_copy(update={"facts": device.facts.model_copy(update={"model": model})})


def test_what_is_unknown_is_said(farm: Settings) -> None:
    devices = [make.device("A"), make.device("B", health=Health.OFFLINE)]
    with Ledger(farm.ledger) as ledger:
        ledger.submit("e-1", make.many(3), expand(make.many(3), "e-1", devices).jobs)
        assert when_it_ends(ledger, "e-1", None).text == "end unknown: no farm answers"
        assert when_it_ends(ledger, "e-1", devices).text == "end unknown: no block of it has ended"
        _end_one(ledger, "A", 10.0)
        found = when_it_ends(ledger, "e-1", devices)
        assert found.text == "end unknown: 3 blocks wait for devices that get no work now: B"
        assert found.data["at"] is None


def test_the_ledger_tells_what_is_left_and_how_long_it_took(farm: Settings, redis: Redis) -> None:
    devices = [make.device("A"), make.device("B")]
    with Ledger(farm.ledger) as ledger:
        for number in (1, 2, 3):  # the second has the same file, the third another one
            experiment = make.many(4 if number == 3 else 3, priority=-1 if number == 3 else 0)
            ledger.submit(f"e-{number}", experiment, expand(experiment, f"e-{number}", devices).jobs)
        _end_one(ledger, "A", 10.0)
        _end_one(ledger, "A", 12.0)
        _end_one(ledger, "B", 99.0, experiment_id="e-3")
        lost = _begin(ledger, "e-1", "B")
        ledger.end_attempt(lost, 1, Outcome.LOST, "transport_lost")
        (job,) = [_begin(ledger, "e-1", "B")]
        found = ledger.outlook("e-1")
        assert [sorted(round(s) for s in durations) for durations in found.took_s.values()] == [[10, 12]]
        assert sorted((each.candidates, each.blocks) for each in found.work) == [(("A",), 1), (("B",), 2)]
        assert [(each.serial, each.is_own) for each in found.under_way] == [("B", True)] and job
        assert found.rivals == {"A": 1, "B": 1}, "one of lower priority is no rival"
        assert ledger.outlook("e-3").rivals == {"A": 2, "B": 2}
        assert ledger.outlook("e-2").took_s == found.took_s
        known = when_it_ends(ledger, "e-1", devices)
        assert isinstance(known, Ending) and time.time() < known.earliest <= known.at <= known.latest


def _begin(ledger: Ledger, experiment_id: str, serial: str) -> str:
    waiting = [row for row in ledger.jobs(experiment_id, ["waiting"]) if row.job.candidates == (serial,)]
    begun = ledger.begin_attempt(waiting[0].job_id, serial, "lab", 15.0)
    assert begun is not None
    return begun.job_id


def _end_one(ledger: Ledger, serial: str, lasted_s: float, experiment_id: str = "e-1") -> None:
    """A block that began so long ago ends well."""
    job_id = _begin(ledger, experiment_id, serial)
    began = update(ATTEMPTS).where(ATTEMPTS.c.job_id == job_id).values(started_at=time.time() - lasted_s)
    with ledger._database.write() as connection:
        connection.execute(began)
    (row,) = [row for row in ledger.running() if row.job_id == job_id]
    ledger.keep(answered(ledger.assignment(row), Outcome.OK))
