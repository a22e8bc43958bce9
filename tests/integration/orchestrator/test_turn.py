"""A scheduler that follows changes places what a slow look at everything would place, whatever happened."""

from __future__ import annotations

import gc
import random
import sqlite3
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from redis import Redis
from sqlalchemy import Engine, event

from orchestrator.acts import ACTS, Actor, Door
from orchestrator.coordination import keys
from orchestrator.coordination.leases import Leases
from orchestrator.ledger import HostState, JobRow, JobState, Ledger, Start
from orchestrator.ledger.said.eligible_devices import devices_for_work
from orchestrator.model.device import Health
from orchestrator.model.errors import FarmError
from orchestrator.model.live.lease import Assignment
from orchestrator.model.live.queue_view import Share
from orchestrator.model.record import Outcome
from orchestrator.model.rights import WHOLE
from orchestrator.scheduling.queue_view import QueueView
from orchestrator.scheduling.reconcile import Reconciler
from orchestrator.scheduling.scheduler import Scheduler
from orchestrator.spec.expansion.expand import expand
from orchestrator.system.config import Settings
from tests.unit.orchestrator import make
from tests.waiting import eventually

from .hosts import Host, answered, send
from .sites import site

LIMIT = 3
"""Sessions of a host."""


def reference(farm: Farm) -> dict[str, str]:
    """Job -> serial, from the laws alone: every waiting job one after the other, every device asked, no view, no lane.

    Priority first; then the experiment that runs least, of those the one served longest ago; then the order of
    submission. Of the devices that can take the job the one that fewest kinds of work may use: a kind is what an
    experiment has for one choice of devices, and each job that was tried before.
    """
    ledger, now = farm.ledger, time.time()
    inventory = farm.host.inventory
    devices = {d.serial: d for d in devices_for_work(inventory.devices(), inventory.hosts(), ledger)}
    held = {hold.serial for hold in ledger.standing.holds()}
    leased = {*farm.host.leases.all(), *(row.serial for row in ledger.running())}
    order = {row.id: number for number, row in enumerate(ledger.experiments())}
    jobs = [job for e in order for job in ledger.jobs(e, [JobState.WAITING])]
    running = {e: sum(row.experiment_id == e for row in ledger.running()) for e in order}
    served: dict[str, tuple[int, float]] = {e: (0, farm.served.get(e, 0.0)) for e in order}
    kinds = {(j.job.experiment_id, j.job.candidates, j.job_id if j.attempts else "") for j in jobs}
    placed: dict[str, str] = {}

    def free(serial: str) -> bool:
        device = devices.get(serial)
        used = sum(s in devices for s in (*leased, *placed.values()))
        ready = device is not None and device.state.health is Health.READY
        rests = device is not None and (device.state.ready_at or 0.0) > now
        return ready and not rests and serial not in held | leased and serial not in placed.values() and used < LIMIT

    def may(job: JobRow, serial: str) -> bool:
        failed = farm.failed.get(job.job_id, set())
        others = [s for s in job.job.candidates if s not in failed and s in devices]
        avoided = serial in failed and any(devices[s].state.health is Health.READY for s in others)
        return free(serial) and not avoided

    left = list(jobs)
    while True:
        able = [(job, s) for job in left for s in job.job.candidates if may(job, s)]
        if not able:
            return placed
        wanted = {s: sum(s in kind[1] for kind in kinds) for s in devices}
        job, serial = min(
            able,
            key=lambda pair: (
                -pair[0].job.priority,
                running[pair[0].job.experiment_id],
                served[pair[0].job.experiment_id],
                order[pair[0].job.experiment_id],
                farm.sequence[pair[0].job_id],
                wanted[pair[1]],
                pair[1],
            ),
        )
        placed[job.job_id] = serial
        left.remove(job)
        running[job.job.experiment_id] += 1
        served[job.job.experiment_id] = (len(placed), 0.0)


class Farm:
    """Six phones on one host, and what a person and bad luck may do."""

    def __init__(self, farm: Settings, redis: Redis, ledger: Ledger, seed: int) -> None:
        self.settings, self.redis, self.ledger, self.random = farm, redis, ledger, random.Random(seed)
        self.all = [make.device(s) for s in "ABCDEF"]
        self.host = Host(farm.model_copy(update={"sessions": LIMIT}), redis, list(self.all))
        self.schedulers = [Scheduler(farm, ledger, redis)]
        self.failed: dict[str, set[str]] = {}
        self.served: dict[str, float] = {}
        self.sequence: dict[str, int] = {}
        self.submitted = 0
        self.site = site(farm, ledger, redis)
        self.audit: list[tuple[str, Door, str, str]] = []
        """The acts that were done, as a person would write them down."""

    def act(self, name: str, *given: object) -> bool:
        """Have somebody act, by any door; return whether anything was done."""
        who = "carol" if name == "submit jobs" else self.random.choice(["anna", "bob"])  # a hold lets its holder's in
        actor = Actor(who, self.random.choice([*Door]), WHOLE)
        with suppress(FarmError):  # it is held by the other one, or nobody announces it
            done = ACTS[name](self.site, actor, *given)
            self.audit += [(actor.who, actor.door, name, done.on)] * done.did
            return done.did
        return False

    def submit(self) -> None:
        """Jobs for any, for each or for one of the phones."""
        name, self.submitted = f"e{self.submitted}", self.submitted + 1
        phones = self.random.sample(self.all, self.random.randint(1, 6))
        count = self.random.choice(["any", "all"])
        experiment = make.many(self.random.randint(1, 3), count=count, priority=self.random.choice([0, 0, 1]))
        jobs = expand(experiment, name, phones).jobs
        self.act("submit jobs", name, experiment, jobs)
        self.sequence |= {job.job_id: index for index, job in enumerate(jobs)}

    def cancel(self) -> None:
        if rows := self.ledger.experiments():
            self.act("cancel", self.random.choice(rows).id)

    def claim(self) -> None:
        self.host.claim()

    def _end(self, outcome: Outcome, cause: str = "") -> None:
        if self.host.running:
            serial = self.random.choice(sorted(self.host.running))
            assignment = self.host.running.pop(serial)
            cancelled = assignment.job_id in {r.job_id for r in self.ledger.running() if r.state == "cancelled"}
            send(self.redis, answered(assignment, outcome, cause))
            self.host.leases.release(serial, assignment.token)
            if outcome is Outcome.LOST and not cancelled:
                self.failed.setdefault(assignment.job_id, set()).add(serial)

    def finish(self) -> None:
        self._end(Outcome.OK)

    def lose(self) -> None:
        self._end(Outcome.LOST, "transport_lost")

    def fail(self) -> None:
        self._end(Outcome.FAILED, "compile")

    def retry(self) -> None:
        if rows := self.ledger.experiments():
            self.act("retry", self.random.choice(rows).id)

    def change(self) -> None:
        """A phone goes, comes back, cools."""
        at = self.random.randrange(len(self.all))
        states: list[dict[str, object]] = [
            {"health": Health.READY}, {"health": Health.OFFLINE}, {"health": Health.SICK},
            {"health": Health.READY, "ready_at": time.time() + 1000},
        ]  # fmt: skip
        serial = self.all[at].serial
        self.host.devices[at] = make.device(serial, **self.random.choice(states))  # type: ignore[arg-type]

    def hold(self) -> None:
        """Somebody takes a phone for themselves, or has it back."""
        serial = self.random.choice("ABCDEF")
        if not self.act("release", serial):
            self.act("hold", [serial], self.random.choice([None, time.time() + 1000]))

    def another(self) -> None:
        """A scheduler that starts beside, or instead."""
        self.schedulers.append(Scheduler(self.settings, self.ledger, self.redis))
        self.schedulers = self.schedulers[-2:]

    def wipe(self) -> None:
        """Redis loses everything; what runs is announced by its host, and restored."""
        self.host.claim()
        self.redis.flushall()

    @property
    def acts(self) -> list[Callable[[], None]]:
        often = [self.submit, self.claim, self.claim, self.finish, self.finish, self.change]
        return [*often, self.cancel, self.lose, self.fail, self.retry, self.retry, self.another, self.wipe, self.hold]

    def turn(self) -> None:
        """One scheduler's turn, beside what everybody should have placed."""
        self.host.announce()
        scheduler = self.random.choice(self.schedulers)
        begin = self.ledger.begin_attempts
        wanted: list[dict[str, str]] = []
        begun: dict[str, str] = {}

        def watched(starts: list[Start], ttl_s: float) -> list[Assignment]:
            wanted.append(reference(self))
            begun.update({start.job_id: start.serial for start in starts})
            return begin(starts, ttl_s)

        self.ledger.begin_attempts = watched  # type: ignore[method-assign,assignment]
        try:
            report = scheduler.tick()
        finally:
            del self.ledger.begin_attempts  # type: ignore[method-assign]
        assert begun == (wanted[0] if wanted else reference(self))
        now = time.time()
        self.served |= {a.job.experiment_id: now for a in report.placed}
        for a in report.placed:
            self.sequence.setdefault(a.job_id, 0)


def as_counted_anew(ledger: Ledger, file: Path, chance: random.Random) -> None:
    """Compare counts and places that a ledger keeps with its file, row by row; and any page of its jobs, in order."""
    of = "SELECT e.id AS name, j.* FROM jobs j JOIN experiments e ON e.sequence = j.experiment ORDER BY 3, 4"
    with closing(sqlite3.connect(file)) as connection:
        connection.row_factory = sqlite3.Row
        rows = connection.execute(of).fetchall()
    words = [(row["name"], row["outcome"] if row["state"] == "done" else row["state"]) for row in rows]
    counts = Counter(words)
    seen = {(each.id, word): jobs for each in ledger.experiments() for word, jobs in each.counts.items()}
    assert seen == counts and ledger.counts() == Counter(word for _, word in words)
    first, most = chance.randrange(6), chance.randrange(1, 9)
    waiting = [row["id"] for row in sorted(rows, key=lambda row: -row["priority"]) if row["state"] == "waiting"]
    page = ledger.listed.waiting(first, most)
    assert ([row.job_id for row in page.rows], page.total) == (waiting[first : first + most], len(waiting))
    if words:
        name, word = chance.choice(words)
        told = chance.choice([(), (word,)])
        mine = [
            row["id"] for row, at in zip(rows, words, strict=True) if at[0] == name and (not told or at == (name, word))
        ]
        page = ledger.listed.jobs(name, told, first, most)
        assert ([row.job_id for row in page.rows], page.total) == (mine[first : first + most], len(mine))
        looked_at = chance.sample([row["id"] for row in rows], chance.randint(0, len(rows)))
        groups = ledger.waiting_groups([*looked_at, "none"], name)
        assert sum(each.jobs for each in groups) == counts[name, "waiting"]
        found = {job for each in groups for job in each.looked_at}
        assert found == {row["id"] for row in rows if row["name"] == name} & {*waiting} & {*looked_at}
        is_open = [row for row in rows if row["state"] not in ("done", "cancelled")]
        to_run = [(row["id"], row["state"]) for row in is_open if row["name"] == name and row["state"] != "held"]
        assert [(each.job, each.state) for each in ledger.listed.unfinished(name, most)] == to_run[:most]
        shown, total = ledger.listed.open_experiments(most)
        names = list(dict.fromkeys(row["name"] for row in is_open))
        assert ([each.id for each in shown], total) == (names[:most], len(names))


QUICK = {"deadline": None, "phases": (Phase.generate,), "derandomize": True}
FIXTURES = [HealthCheck.function_scoped_fixture]


@pytest.mark.parametrize("seen", ["changes", "everything"])
@settings(max_examples=8, suppress_health_check=FIXTURES, **QUICK)
@given(seed=st.integers(0, 2**32), steps=st.integers(5, 25))
def test_following_changes_places_what_a_look_at_everything_does(
    farm: Settings, redis: Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seen: str, seed: int, steps: int
) -> None:
    monkeypatch.setattr("orchestrator.scheduling.seldom.Seldom.due", property(lambda _: seen == "everything"))
    redis.flushall()
    url = f"sqlite:///{tmp_path / f'{time.monotonic_ns()}.sqlite'}"
    with Ledger(url, rest_s=0.0, quarantine_after=99) as ledger:
        tried = Farm(farm, redis, ledger, seed)
        for _ in range(steps):
            tried.random.choice(tried.acts)()
            tried.turn()
            as_counted_anew(ledger, Path(url.removeprefix("sqlite:///")), tried.random)
        rows = reversed(ledger.audit.newest(len(tried.audit) + 1))
        assert [(row.who, row.door, row.act, row.target) for row in rows] == tried.audit


def test_a_job_that_waits_again_is_seen_though_nothing_else_happens(farm: Settings, redis: Redis) -> None:
    with Ledger(farm.ledger, rest_s=0.0) as ledger:
        tried = Farm(farm, redis, ledger, 1)
        scheduler = tried.schedulers[0]
        jobs = expand(make.many(1), "e", tried.all[:1]).jobs
        ledger.submit("e", make.many(1), jobs)
        tried.sequence |= {job.job_id: 0 for job in jobs}
        tried.turn()
        tried.claim()
        tried.fail()
        tried.turn()
        assert ledger.counts() == {"failed": 1} and scheduler.tick().placed == ()
        ledger.retry("e")
        assert [a.attempt for a in scheduler.tick().placed] == [2]


def test_a_record_that_comes_late_takes_its_job_out_of_the_queue(farm: Settings, redis: Redis) -> None:
    with Ledger(farm.ledger, rest_s=0.0) as ledger:
        tried = Farm(farm, redis, ledger, 1)
        jobs = expand(make.many(1), "e", tried.all[:1]).jobs
        ledger.submit("e", make.many(1), jobs)
        tried.sequence |= {job.job_id: 0 for job in jobs}
        tried.turn()
        tried.claim()
        (assignment,) = tried.host.running.values()
        tried.host.running.clear()
        ledger.standing.hold(["A"], "anna")
        ledger.end_attempt(assignment.job_id, assignment.attempt, Outcome.LOST, "transport_lost")
        tried.host.leases.release("A", assignment.token)
        tried.turn()
        assert ledger.counts() == {"waiting": 1}
        send(redis, answered(assignment, Outcome.OK, ""))
        ledger.standing.end_hold("A")
        tried.turn()
        assert ledger.counts() == {"ok": 1}


def test_an_experiment_stays_on_its_device_whoever_schedules_until_that_is_gone(farm: Settings, redis: Redis) -> None:
    with Ledger(farm.ledger, rest_s=0.0) as ledger:
        tried = Farm(farm, redis, ledger, 1)
        spec = make.many(6, count="any", placement={"policy": "same_device"})
        ledger.submit("e", spec, expand(spec, "e", tried.all).jobs)
        on: list[str] = []
        for health in (Health.READY, Health.READY, Health.READY, Health.OFFLINE, Health.OFFLINE):
            if on:
                at = [phone.serial for phone in tried.all].index(on[0])
                tried.host.devices[at] = make.device(on[0], health=health)
            tried.host.announce()
            (placed,) = Scheduler(farm, ledger, redis).tick().placed  # each knows what the ledger tells it
            on.append(placed.serial)
            assert Scheduler(farm, ledger, redis).tick().placed == (), "others are free"
            tried.host.claim()
            tried.finish()
        assert len(set(on[:3])) == len(set(on[3:])) == 1 and on[3] != on[0]


def test_leases_that_end_are_noticed_without_a_look_at_everything(
    farm: Settings, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One is renewed, which is no change: it is not taken for ended before it is."""
    monkeypatch.setattr("orchestrator.scheduling.seldom.Seldom.due", property(lambda _: False))
    with Ledger(farm.ledger, rest_s=0.0) as ledger:
        tried = Farm(farm.model_copy(update={"lease_ttl_s": 3.0}), redis, ledger, 1)
        ledger.submit("e", make.many(1), expand(make.many(1), "e", tried.all[:2]).jobs)
        tried.host.announce()
        scheduler = tried.schedulers[0]
        assert len(scheduler.tick().placed) == 2
        tried.host.claim()
        held = {lease.serial: lease for lease in tried.host.leases.all().values()}
        scheduler.tick()

        def lost_while_b_is_renewed() -> int:
            assert tried.host.leases.renew("B", held["B"].token, held["B"].holder, 3.0) == "held"
            return scheduler.tick().lost

        assert eventually(lost_while_b_is_renewed) == 1
        assert held["B"].token in {row.token for row in ledger.running()}
        assert held["A"].token not in {row.token for row in ledger.running()}


def test_a_small_farm_is_not_read_anew_in_each_turn(
    farm: Settings, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, everywhere = list[object](), Leases.everywhere
    monkeypatch.setattr("orchestrator.scheduling.live_view.LOOK_SHARE", 1e-9)
    monkeypatch.setattr(Leases, "everywhere", lambda leases, *known: read.append(leases) or everywhere(leases, *known))
    with Ledger(farm.ledger) as ledger:
        tried = Farm(farm, redis, ledger, 1)
        tried.host.announce()
        for _ in range(3):
            tried.schedulers[0].tick()
        assert len(read) == 1


def test_what_keeps_devices_from_work_is_one_question_where_nothing_does(farm: Settings) -> None:
    asked: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        asked.append(statement)

    with Ledger(farm.ledger) as ledger:
        nothing = ledger.standing.bars()
        event.listen(Engine, "before_cursor_execute", note)
        try:
            assert ledger.standing.bars() == nothing and not any(nothing)
        finally:
            event.remove(Engine, "before_cursor_execute", note)
        assert len([each for each in asked if each.startswith("SELECT")]) == 1, asked
        ledger.standing.hold(["A"], "anna")
        ledger.standing.say_of_host("lab", HostState.DRAINING)
        assert [hold.serial for hold in ledger.standing.bars().holds] == ["A"]
        assert [host.name for host in ledger.standing.bars().hosts] == ["lab"]


def test_what_was_cancelled_is_told_at_once_and_again_after_a_wipe(
    farm: Settings, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    told, publish = list[object](), Reconciler._publish
    monkeypatch.setattr(Reconciler, "_publish", lambda mine, sets: told.append(sets) or publish(mine, sets))
    monkeypatch.setattr("orchestrator.scheduling.reconcile.PUBLISH_S", 600.0)
    with Ledger(farm.ledger) as ledger:
        tried = Farm(farm, redis, ledger, 1)
        ledger.submit("e", make.many(1), expand(make.many(1), "e", tried.all[:1]).jobs)
        tried.host.announce()
        scheduler = tried.schedulers[0]
        assert len(scheduler.tick().placed) == 1
        tried.host.claim()
        told.clear()
        for _ in range(3):
            scheduler.tick()
        assert len(told) <= 1, "nothing changed"
        (job,) = ledger.cancel("e")
        scheduler.tick()
        assert redis.smembers(keys.CANCELLED) == {job}
        monkeypatch.setattr("orchestrator.scheduling.reconcile.PUBLISH_S", 0.0)
        redis.delete(keys.CANCELLED)
        tried.host.announce()
        scheduler._reconciler._publish_at = 0.0  # a second later
        scheduler.tick()
        assert redis.smembers(keys.CANCELLED) == {job}


def test_attempts_of_old_are_not_gone_through(farm: Settings) -> None:
    """A turn reads by an index those that changed, in a ledger with years of them."""
    asked: list[tuple[str, object]] = []

    def note(_connection: object, _cursor: object, statement: str, parameters: object, *_: object) -> None:
        asked.append((statement, parameters))

    with Ledger(farm.ledger) as ledger:
        jobs = expand(make.many(1), "e", [make.device("A")]).jobs
        ledger.submit("e", make.many(1), jobs)
        number = ledger.news()
        assert number is not None and ledger.begin_attempts([Start(jobs[0].job_id, "A", "lab")], 15.0)
        event.listen(Engine, "before_cursor_execute", note)
        try:
            assert (news := ledger.news(number.number)) is not None and len(news.attempts) == 1
            assert len(ledger.running()) == 1
        finally:
            event.remove(Engine, "before_cursor_execute", note)
    of_attempts = [(text, values) for text, values in asked if "FROM jobs" in text and "JOIN attempts" in text]
    assert len(of_attempts) == 2
    with closing(sqlite3.connect(farm.ledger.removeprefix("sqlite:///"))) as connection:
        for text, values in of_attempts:
            steps = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {text}", values)]  # type: ignore[arg-type]
            assert not any(step.startswith("SCAN") for step in steps), steps


def test_a_host_that_spoils_its_change_log_is_placed_on_all_the_same(farm: Settings, redis: Redis) -> None:
    with Ledger(farm.ledger, rest_s=0.0) as ledger:
        tried = Farm(farm, redis, ledger, 1)
        ledger.submit("e", make.many(3), expand(make.many(3), "e", tried.all[:1]).jobs)
        tried.host.announce()
        scheduler, done = tried.schedulers[0], 0
        for spoilt in (b"no number", b"no number", b"no number"):
            redis.set(keys.change("lab"), spoilt)
            redis.set(keys.changes("lab"), spoilt)
            done += len(scheduler.tick().placed)
            tried.host.claim()
            tried.finish()
        assert done == 3


def test_experiments_that_are_over_take_no_memory_and_come_back_as_they_were(
    farm: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("orchestrator.scheduling.queue_view", "orchestrator.ledger.queue.news"):
        monkeypatch.setattr(f"{module}.MOST", 3)
    with Ledger(farm.ledger) as ledger:
        view = QueueView(ledger)
        for number in range(60):
            if number == 30:
                gc.collect()
                tracemalloc.start()
            name, serial = f"e{number}", "AB"[number % 2]
            jobs = expand(make.many(1), name, [make.device(serial)]).jobs
            ledger.submit(name, make.many(1), jobs)
            view.refresh()
            assert set(view.shares) == {name}
            assert view.groups()[0][0].job_id == jobs[0].job_id
            begun = ledger.begin_attempt(jobs[0].job_id, serial, "lab", 15.0)
            assert begun is not None
            view.refresh()
            ledger.end_attempt(begun.job_id, begun.attempt, Outcome.FAILED, "compile")
            view.refresh()
            assert not view.shares
        gc.collect()
        used, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert used / 30 < 5000, "an experiment's file alone is 10000 bytes"
        ledger.retry("e1")
        ledger.submit("fresh", make.many(1), expand(make.many(1), "fresh", [make.device("A")]).jobs)
        view.refresh()
        back = view.shares
        assert back.keys() == {"e1", "fresh"} and back["fresh"] == Share()
        assert (back["e1"].running, back["e1"].serial) == (0, "B") and back["e1"].served_at > 0
        again = QueueView(ledger)
        again.refresh()
        assert again.shares == back
        monkeypatch.setattr(ledger, "served", lambda _: {})  # as if they were pruned since the news
        again = QueueView(ledger)
        again.refresh()
        assert again.shares == {"e1": Share(), "fresh": Share()}


def test_an_experiment_that_waits_is_read_once_however_many_there_are(
    farm: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.ledger.queue.news.MOST", 2)
    names = [f"e{number}" for number in range(5)]
    with Ledger(farm.ledger) as ledger:
        read: list[str] = []
        spec = ledger._spec
        monkeypatch.setattr(ledger._reader, "_spec", lambda name: (read.append(name), spec(name))[1])
        jobs = {name: expand(make.many(9), name, [make.device("A")]).jobs for name in names}
        for name in names:
            ledger.submit(name, make.many(9), jobs[name])
        view = QueueView(ledger)
        view.refresh()
        assert sorted(read) == names
        for turn in range(3):
            for name in names:
                assert ledger.begin_attempt(jobs[name][turn].job_id, "A", "lab", 15.0) is not None
            view.refresh()
        assert sorted(read) == names and {group[0].job_id for group in view.groups()} == {
            jobs[name][3].job_id for name in names
        }
