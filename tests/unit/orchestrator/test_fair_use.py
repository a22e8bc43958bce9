"""Fair use by simulated time, on the real placement: each project has its share, and nobody waits longer than that."""

from __future__ import annotations

import heapq
import math
import random
import time
from collections import defaultdict
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

import pytest

from orchestrator.ledger import Hold, Ledger, Start
from orchestrator.ledger.queue.untried import Untried
from orchestrator.ledger.said.eligible_devices import Barred
from orchestrator.model.live.lease import Assignment, Lease
from orchestrator.model.live.queue_view import WaitingJob
from orchestrator.model.live.usage import HALF_LIFE_S, Account, Used, recent_s, week_of, weight
from orchestrator.model.live.waiting import WaitKind
from orchestrator.model.people import COMMON
from orchestrator.model.rights import Terms
from orchestrator.scheduling.fair_use import UnderWay, fair_use
from orchestrator.scheduling.placement import Floor, Policy, place
from orchestrator.scheduling.placer import Placer
from orchestrator.scheduling.policies import POLICIES
from orchestrator.scheduling.queue_view import QueueView
from orchestrator.spec.expansion.expand import expand

from . import make

START = 1.8e9
HOUR_S = 3600.0


@dataclass
class Work:
    """Endless work of an account: blocks of an experiment for any phone."""

    account: Account
    block_s: float
    priority: int = 0
    since: float = START
    until: float = math.inf


@dataclass
class Lab:
    """A farm by simulated time: the real placement, and phones that are free when their block's time is over."""

    phones: int
    work: list[Work]
    terms: dict[str, Terms]
    chance: random.Random
    step_s: float = 10.0
    varies: float = 0.5
    """The part by which blocks are longer or shorter than they are on average."""
    holds: list[Hold] = field(default_factory=list)
    now: float = START
    began: dict[str, tuple[int, float]] = field(default_factory=dict)
    """Phone -> its work's number, and when it began."""
    used: dict[Account, dict[int, list[float]]] = field(default_factory=dict)
    spells: list[tuple[Account, float, float]] = field(default_factory=list)
    on: dict[str, list[tuple[Account, float, float]]] = field(default_factory=lambda: defaultdict(list))
    """Phone -> who used it, from when to when."""
    took_s: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._devices = {(each := make.device(f"S{n}", host=f"h{n // 400}")).serial: each for n in range(self.phones)}
        self._ends: list[tuple[float, str]] = []
        lease = Lease(serial="S", token=1, job_id="j", attempt=1, expires_at=math.inf)
        self._leases, self._lease = dict[str, Lease](), lease
        any_job = make.waiting("", *self._devices)
        self._jobs = [
            replace(any_job, experiment_id=f"e{n}", priority=work.priority, order=(n, 0),
                    project=work.account.project, submitter=work.account.person)
            for n, work in enumerate(self.work)
        ]  # fmt: skip

    def run(self, until: float) -> None:
        while self.now < until:
            self._end()
            self._begin()
            self.now += self.step_s

    def _end(self) -> None:
        while self._ends and self._ends[0][0] <= self.now:
            at, serial = heapq.heappop(self._ends)
            number, began = self.began.pop(serial)
            del self._leases[serial]
            account = self.work[number].account
            sums = self.used.setdefault(account, {}).setdefault(week_of(at), [0.0, 0.0])
            sums[0] += at - began
            sums[1] += (at - began) * weight(at)
            self.spells.append((account, began, at))
            self.on[serial].append((account, began, at))
            before = self.took_s.get(f"e{number}", at - began)
            self.took_s[f"e{number}"] = before + 0.2 * (at - began - before)

    def _begin(self) -> None:
        under_way = defaultdict[Account, UnderWay](UnderWay)
        for number, began in self.began.values():
            count, elapsed_s, expected_s = under_way[self.work[number].account]
            expected_s += max(self.now - began, self.took_s.get(f"e{number}", 0.0))
            under_way[self.work[number].account] = UnderWay(count + 1, elapsed_s + self.now - began, expected_s)
        used = {
            account: Used(of[week_of(self.now)][0] if week_of(self.now) in of else 0.0,
                          recent_s(((week, sums[1]) for week, sums in of.items()), self.now))
            for account, of in self.used.items()
        }  # fmt: skip
        lasting = [each for each in self.holds if each.until is None or each.until > self.now]
        begun = tuple(each for each in lasting if not each.is_to_come)
        bars = Barred({}, (), (), {}, begun, tuple(each for each in lasting if each.is_to_come))
        policy = Policy(
            use=fair_use(self.terms, used, under_way, self.took_s, self.now), took_s=self.took_s,
            held=bars.held_for(self._devices) if begun else {}, reserved=bars.to_come,
        )  # fmt: skip
        as_held = {each.serial: each for each in bars.applied([*self._devices.values()])} if begun else self._devices
        floor = Floor(as_held, self._leases, policy, self.now)
        groups = [
            Untried(range(len(floor.free)), lambda n, job=job, number=number: replace(job, job_id=f"{number}-{n}"))
            for number, (work, job) in enumerate(zip(self.work, self._jobs, strict=True))
            if work.since <= self.now < work.until
        ]
        for job_id, serial in place(groups, floor, explain=0).assignments:
            number = int(job_id.partition("-")[0])
            lasts_s = self.work[number].block_s * self.chance.uniform(1 - self.varies, 1 + self.varies)
            self.began[serial] = number, self.now
            self._leases[serial] = self._lease
            heapq.heappush(self._ends, (self.now + lasts_s, serial))

    def time_of(self, since: float, until: float) -> dict[str, float]:
        """Project -> its phone-time in between."""
        found = defaultdict[str, float](float)
        running = ((self.work[number].account, began, self.now) for number, began in self.began.values())
        for account, began, ended in (*self.spells, *running):
            found[account.project] += max(0.0, min(ended, until) - max(began, since))
        return found


def drawn(chance: random.Random, phones: int, longest_s: float) -> Lab:
    """Projects of different shares; people in them, with blocks of different lengths and priorities."""
    terms = {f"p{n}": Terms(share=chance.choice([0.5, 1.0, 2.0, 3.0])) for n in range(chance.randint(2, 5))}
    work = [
        Work(Account(name, f"{name}.{n}"), longest_s * chance.uniform(0.2, 1.0), chance.choice([0, 0, 5]))
        for name in terms
        for n in range(chance.randint(1, 3))
    ]
    return Lab(phones, work, terms, chance)


@pytest.mark.parametrize(("phones", "longest_s"), [(60, 120.0), (10_000, 1500.0)])
def test_each_project_has_its_share_within_a_twentieth(phones: int, longest_s: float, seed: int) -> None:
    lab = drawn(random.Random(f"{seed}:{phones}"), phones, longest_s)
    lab.step_s = longest_s / 25
    lab.run(START + HOUR_S)
    found = lab.time_of(START, START + HOUR_S)
    whole, shares = sum(found.values()), sum(each.share for each in lab.terms.values())
    assert whole > 0.9 * phones * HOUR_S, "phones were left free"
    for name, terms in lab.terms.items():
        assert found[name] / whole == pytest.approx(terms.share / shares, rel=0.05), (name, lab.terms, lab.work)


def test_nobody_waits_behind_anothers_backlog_for_longer_than_their_share_says(seed: int) -> None:
    """A project that used the farm alone for hours waits for a bound that its share gives; the others for a block."""
    chance = random.Random(seed)
    phones, block_s = 20, 240.0
    terms = {name: Terms(share=chance.choice([1.0, 2.0, 4.0])) for name in ("first", "second", "third")}
    since = [START, START + chance.uniform(1, 8) * HOUR_S, START + chance.uniform(9, 10) * HOUR_S]
    work = [Work(Account(name, "p"), block_s, since=at) for name, at in zip(terms, since, strict=True)]
    lab = Lab(phones, work, terms, chance, step_s=30.0)
    lab.run(START + 14 * HOUR_S)
    whole = sum(each.share for each in terms.values())
    for name, at in zip(terms, since, strict=True):
        begun = sorted(began for account, began, _ in lab.spells if account.project == name)
        gaps = [after - before for before, after in pairwise([at, *begun, lab.now])]
        used_before = name != "third"
        most_s = HALF_LIFE_S * math.log2(whole / terms[name].share) if used_before else 0.0
        its_phones = phones * terms[name].share / whole
        assert max(gaps) <= most_s + 2 * block_s * (1 + 1 / its_phones), (name, since, terms)


def test_a_project_uses_no_more_than_its_hours_and_says_so(seed: int) -> None:
    """It finishes what it began: of blocks whose duration is known hardly any begins that ends after its limit."""
    chance = random.Random(seed)
    hours = chance.uniform(2, 8)
    terms = {"short": Terms(share=9.0, phone_hours=hours)}
    work = [Work(Account(name, name), 120.0) for name in ("short", "other")]
    lab = Lab(16, work, terms, chance)
    lab.run(START + 2 * HOUR_S)
    used_s = lab.time_of(START, lab.now)["short"]
    assert 3600 * hours - 16 * 180 <= used_s <= 3600 * hours + 16 * 180
    known = {Account("short", "short"): Used(week_s=3600 * hours)}
    policy = Policy(use=fair_use(terms, known, {}, {}, lab.now))
    mine = make.waiting("mine", "A", project="short")
    found = place([[mine]], Floor({"A": make.device("A")}, {}, policy, lab.now))
    assert found.assignments == () and found.waiting["mine"].kind is WaitKind.QUOTA
    assert f"its {hours:g} phone-hours" in found.waiting["mine"].text


def test_a_reservation_begins_one_block_late_at_most(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """No block whose duration is known lasts into it; in its time nobody else begins there, and its holder does
    at once. A person's is beside their project's pool."""
    chance, step_s = random.Random(seed), 5.0
    work = [Work(Account(name, f"{name}.p"), chance.uniform(60, 400)) for name in ("a", "b", "c")]
    lab = Lab(12, work, {}, chance, step_s=step_s, varies=0.0)
    monkeypatch.setattr(time, "time", lambda: lab.now)
    for n in range(12):
        begins, account = START + chance.uniform(1000, 3000), chance.choice(work).account
        pool = chance.choice(["", "", account.project])
        if pool:
            lab.holds.append(Hold(f"S{n}", "x", START, None, "", project=pool))
        project, until = "" if pool else chance.choice(["", account.project]), begins + chance.uniform(500, 1500)
        lab.holds.append(Hold(f"S{n}", account.person, START, until, "", project=project, begins=begins))
    lab.run(START + 2 * HOUR_S)
    known_at = START + max(each.block_s for each in work) + step_s
    for hold in lab.holds:
        until = hold.until or math.inf
        others = [each for each in lab.on[hold.serial] if not hold.admits(each[0])]
        assert not [began for _, began, _ in others if hold.begins <= began < until], hold
        late = [(began, ended) for _, began, ended in others if began < hold.begins < ended - step_s]
        assert hold.is_pool or all(began < known_at for began, _ in late), (hold, late)
        own = [began for account, began, _ in lab.on[hold.serial] if hold.admits(account) and began >= hold.begins]
        free_at = max([hold.begins, *(ended for _, began, ended in lab.on[hold.serial] if began < hold.begins < ended)])
        assert hold.is_pool or free_at + step_s > until or min(own) <= free_at + 2 * step_s, hold


def test_within_a_project_priority_comes_first_and_beside_another_it_does_not() -> None:
    high = make.waiting("high", "A", experiment_id="a", project="used", submitter="anna", priority=9, order=(0, 0))
    low = make.waiting("low", "A", experiment_id="b", project="used", submitter="bob", order=(1, 0))
    other = make.waiting("other", "A", experiment_id="c", project="fresh", submitter="carla", order=(2, 0))
    used = {Account("used", "anna"): Used(recent_s=60.0)}
    policy = Policy(use=fair_use({}, used, {}, {}, START))

    def first(*jobs: WaitingJob) -> str:
        ((job_id, _),) = place([[job] for job in jobs], Floor({"A": make.device("A")}, {}, policy, START)).assignments
        return job_id

    assert first(low, high) == "high" and first(high, other, low) == "other"
    assert first(low, replace(high, priority=0)) == "low", "of the same priority: the person who used less"


def test_the_ledger_and_the_placer_share_as_the_simulation_does(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An hour of a whole ledger, view and placer, by simulated time."""
    clock, share = [START], random.Random(seed).choice([1.0, 1.5, 3.0])
    monkeypatch.setattr(time, "time", lambda: clock[0])
    devices = {f"S{n}": make.device(f"S{n}") for n in range(8)}
    with Ledger(f"sqlite:///{tmp_path / 'ledger.sqlite'}") as ledger:
        ledger.people.add_project("vision", "", Terms(share=share))
        queue = QueueView(ledger)
        placer = Placer(queue, POLICIES["fair_share"], ledger)
        for name, who, project in (("a", "anna", "vision"), ("b", "bob", "vision"), ("c", "carla", COMMON)):
            experiment = make.many(300, count="any", name=name)
            jobs = expand(experiment, name, [*devices.values()]).jobs
            ledger.submit(name, experiment, jobs, by=who, project=project)
        running, time_of = dict[str, tuple[float, Assignment]](), defaultdict[str, float](float)
        while clock[0] < START + HOUR_S:
            for serial, (ends, one) in list(running.items()):
                if ends <= clock[0]:
                    ledger.keep(make.record(one.job, attempt=one.attempt, token=one.token, serial=serial))
                    time_of[one.job.experiment_id] += clock[0] - running.pop(serial)[0] + 120.0
            queue.refresh()
            leases = {s: Lease(serial=s, job_id=one.job_id, attempt=1, token=one.token, expires_at=math.inf)
                      for s, (_, one) in running.items()}  # fmt: skip
            starts = [Start(job_id, s, "lab") for job_id, s in placer.place(devices, leases, 0, {}).assignments]
            running |= {one.serial: (clock[0] + 120.0, one) for one in ledger.begin_attempts(starts, 60.0)}
            clock[0] += 30.0
        used = ledger.people.used(clock[0])
    whole = sum(time_of.values())
    assert (time_of["a"] + time_of["b"]) / whole == pytest.approx(share / (share + 1), rel=0.05)
    assert time_of["a"] == pytest.approx(time_of["b"], rel=0.06)
    told = {account.project + account.person: each.week_s for account, each in used.items()}
    assert told == pytest.approx(
        {"visionanna": time_of["a"], "visionbob": time_of["b"], "commoncarla": time_of["c"]}, abs=1e-3
    )


def test_a_week_to_come_counts_as_now(seed: int) -> None:
    """A clock that was wrong, or a damaged row, stops no turn of the scheduler."""
    chance = random.Random(seed)
    weeks = [(week_of(1e9) + 10 ** chance.randrange(1, 19), chance.random()) for _ in range(5)]
    assert recent_s(weeks, 1e9) == pytest.approx(sum(seconds for _, seconds in weeks))
