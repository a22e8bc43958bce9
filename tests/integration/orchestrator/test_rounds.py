"""The real order of blocks on devices is the designed one; sequential sampling goes on until it is precise enough."""

from __future__ import annotations

import sqlite3
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from redis import Redis

from orchestrator import acts
from orchestrator.coordination.artifacts import Artifacts
from orchestrator.coordination.inventory import Inventory
from orchestrator.ledger import JobState, Ledger
from orchestrator.model.device import Api
from orchestrator.model.event import Sample
from orchestrator.model.experiment import DeviceChoice, Experiment, Matrix, Sampling
from orchestrator.model.job import Job
from orchestrator.model.live.lease import Assignment
from orchestrator.model.record import Outcome, Record
from orchestrator.scheduling.scheduler import Scheduler
from orchestrator.scheduling.strategies.further_jobs import FurtherJobs
from orchestrator.spec.expansion.expand import Expansion, expand
from orchestrator.system.config import Settings
from tests.unit.orchestrator import make

from .hosts import Host, answered
from .sites import ME, site

NO_FILES = Artifacts(Path("/nowhere"))
NETWORKS = ("lenet", "cifar10_quick", "autoencoder_784", "squeezenet_v1_0")


@pytest.fixture
def ledger(farm: Settings) -> Iterator[Ledger]:
    with Ledger(farm.ledger, rest_s=0.0) as opened:
        yield opened


def experiment(count: object = "all", **sampling: object) -> Experiment:
    axes = Matrix(network=NETWORKS, backend=(Api.OPENCL,))
    return make.experiment(matrix=axes, sampling=Sampling(**sampling), devices=DeviceChoice(count=count))


def submit(ledger: Ledger, host: Host, wanted: Experiment, experiment_id: str = "e-1") -> Expansion:
    expansion = expand(wanted, experiment_id, host.devices)
    assert ledger.submit(experiment_id, wanted, expansion.jobs, expansion.exclusions, expansion.reserve)
    return expansion


def timed(assignment: Assignment, ms: float) -> Record:
    sample = Sample(seq=0, t_ns=0, index=0, phase="timed", start_ns=0, duration_ns=int(ms * 1e6))
    return answered(assignment, Outcome.OK).model_copy(update={"samples": (sample,)})


class Log:
    """A host that answers at once and notes what ran where, in order."""

    def __init__(
        self, farm: Settings, redis: Redis, ms: Callable[[Job], float] = lambda job: 10.0, serials: str = "AB"
    ) -> None:
        self.ran: dict[str, list[Job]] = defaultdict(list)
        self.ms = ms
        self.host = Host(farm, redis, [make.device(serial) for serial in serials], self._answer)

    def _answer(self, assignment: Assignment) -> Record:
        self.ran[assignment.serial].append(assignment.job)
        return timed(assignment, self.ms(assignment.job))

    def turn(self, scheduler: Scheduler) -> int:
        """One turn of the scheduler, and everything that it started is done."""
        self.host.announce()
        added = scheduler.tick().added
        self.host.claim()
        self.host.finish()
        return added

    def run(self, scheduler: Scheduler, ledger: Ledger, experiment_id: str = "e-1", turns: int = 200) -> int:
        added = 0
        for _ in range(turns):
            added += self.turn(scheduler)
            if ledger.experiment(experiment_id).finished:
                return added
        raise AssertionError(f"not finished after {turns} turns: {ledger.counts(experiment_id)}")


def names(jobs: list[Job]) -> list[str]:
    return [f"{job.role} {job.cell.label} {job.block}" for job in jobs]


@pytest.mark.parametrize("order", ["interleaved", "random", "abba"])
def test_each_device_runs_its_blocks_in_the_designed_order(
    farm: Settings, redis: Redis, ledger: Ledger, order: str
) -> None:
    log = Log(farm, redis, serials="ABC")
    expansion = submit(ledger, log.host, experiment(blocks=4, order=order, canary=3))
    log.run(Scheduler(farm, ledger, redis), ledger)
    for serial in "ABC":
        assert names(log.ran[serial]) == names([job for job in expansion.jobs if job.candidates == (serial,)])
        assert log.ran[serial][0].role == log.ran[serial][-1].role == "canary"
    positions: dict[str, list[int]] = defaultdict(list)
    for position, job in enumerate(job for job in log.ran["A"] if job.role == "work"):
        positions[job.cell.cell_id].append(position)
    if order == "abba":
        assert len({sum(found) for found in positions.values()}) == 1
    if order == "random":
        assert len({tuple(names(log.ran[serial])) for serial in "ABC"}) == 3


def test_two_experiments_keep_their_orders_while_they_share_the_devices(
    farm: Settings, redis: Redis, ledger: Ledger
) -> None:
    log = Log(farm, redis)
    first = submit(ledger, log.host, experiment(blocks=4, order="abba"), "e-1")
    second = submit(ledger, log.host, experiment(blocks=4, order="random"), "e-2")
    scheduler = Scheduler(farm, ledger, redis)
    for experiment_id in ("e-1", "e-2"):
        log.run(scheduler, ledger, experiment_id)
    for serial in "AB":
        for expansion in (first, second):
            ran = [job for job in log.ran[serial] if job.experiment_id == expansion.jobs[0].experiment_id]
            assert names(ran) == names([job for job in expansion.jobs if job.candidates == (serial,)])


def test_whoever_is_free_takes_the_next_block_of_the_design(farm: Settings, redis: Redis, ledger: Ledger) -> None:
    log = Log(farm, redis, serials="ABC")
    expansion = submit(ledger, log.host, experiment("any", blocks=4, order="abba"))
    log.run(Scheduler(farm, ledger, redis), ledger)
    place = {job.job_id: index for index, job in enumerate(expansion.jobs)}
    for serial in "ABC":
        ran = [place[job.job_id] for job in log.ran[serial]]
        assert ran == sorted(ran) and len(ran) >= 4
    assert sorted(job.job_id for jobs in log.ran.values() for job in jobs) == sorted(place)


def noisy(job: Job) -> float:
    """lenet varies by half, the others by a thousandth."""
    return 10.0 + (5.0 if job.cell.workload.network == "lenet" else 0.01) * (job.block % 2)


def test_only_imprecise_cells_get_more_blocks_up_to_the_cap(farm: Settings, redis: Redis, ledger: Ledger) -> None:
    log = Log(farm, redis, noisy)
    submit(ledger, log.host, experiment(blocks=12, target_interval=0.05, max_blocks=16, canary=8))
    assert ledger.counts("e-1")["held"] == 2
    added = log.run(Scheduler(farm, ledger, redis), ledger)
    assert added == 2 * 4 * 2  # four more blocks of lenet and a canary after each, on two devices
    for serial in "AB":
        made = Counter(job.cell.label for job in log.ran[serial] if job.role == "work")
        assert made == {"lenet opencl fp32": 16, **{f"{name} opencl fp32": 12 for name in NETWORKS[1:]}}
        assert log.ran[serial][-1].role == "canary"
        blocks = [job.block for job in log.ran[serial] if job.role == "canary"]
        assert blocks == list(range(len(blocks)))
    assert ledger.counts("e-1") == {"ok": sum(map(len, log.ran.values()))}
    assert len({row.job_id for row in ledger.jobs("e-1")}) == sum(ledger.counts("e-1").values())


def test_a_new_scheduler_goes_on_where_the_old_one_stopped(farm: Settings, redis: Redis, ledger: Ledger) -> None:
    log = Log(farm, redis, noisy)
    submit(ledger, log.host, experiment(blocks=3, target_interval=0.05, max_blocks=6))
    for _ in range(100):
        log.turn(Scheduler(farm, ledger, redis))  # each turn is another scheduler's first
        if ledger.experiment("e-1").finished:
            break
    assert Counter(job.cell.workload.network for job in log.ran["A"])["lenet"] == 6
    assert ledger.undecided() == []


def finished_round(ledger: Ledger, wanted: Experiment, ms: Callable[[Job], float] = noisy) -> None:
    """An experiment of one device whose blocks are done, about which nothing is decided yet."""
    expansion = expand(wanted, "e-1", [make.device("A")])
    ledger.submit("e-1", wanted, expansion.jobs, (), expansion.reserve)
    for job in expansion.jobs:
        assignment = ledger.begin_attempt(job.job_id, "A", "lab", 1.0)
        assert assignment is not None
        ledger.keep(timed(assignment, ms(job)))


def test_an_experiment_is_not_finished_before_it_is_decided(ledger: Ledger) -> None:
    finished_round(ledger, experiment(blocks=12, target_interval=0.05), ms=lambda job: 10.0)
    assert not ledger.experiment("e-1").finished
    assert ledger.device_counts("e-1") == {"A": (48, 48)}
    assert [job for job in ledger.waiting() if job.experiment_id == "e-1"] == []
    assert FurtherJobs(ledger, NO_FILES).run() == 0
    assert ledger.experiment("e-1").finished and ledger.counts("e-1") == {"ok": 48}


def test_two_schedulers_add_a_round_once(farm: Settings, ledger: Ledger) -> None:
    finished_round(ledger, experiment(blocks=12, target_interval=0.05, max_blocks=14))
    with Ledger(farm.ledger) as other:
        start, added = threading.Barrier(2), []

        def decide(own: Ledger) -> None:
            rounds = FurtherJobs(own, NO_FILES)
            start.wait()
            added.append(rounds.run())

        threads = [threading.Thread(target=decide, args=(own,)) for own in (ledger, other)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
    assert sorted(added) == [0, 1]
    assert ledger.counts("e-1") == {"ok": 48, "waiting": 1, "held": 1}


def test_a_decision_for_a_lane_that_has_changed_does_nothing(ledger: Ledger) -> None:
    finished_round(ledger, experiment(blocks=3, target_interval=0.05, max_blocks=9))
    (lane,) = ledger.undecided()
    again = [row.job for row in ledger.jobs("e-1", [JobState.HELD])]
    ledger.cancel("e-1")
    assert not ledger.extend(lane, again)
    assert ledger.experiment("e-1").finished and ledger.counts("e-1") == {"ok": 12, "cancelled": 1}


def test_blocks_that_never_go_well_are_not_repeated(farm: Settings, redis: Redis, ledger: Ledger) -> None:
    log = Log(farm, redis)
    log.host.answer = lambda assignment: answered(assignment, Outcome.FAILED, "compile")
    submit(ledger, log.host, experiment(blocks=3, target_interval=0.05, max_blocks=9))
    scheduler = Scheduler(farm, ledger, redis)
    for _ in range(30):
        log.turn(scheduler)
    assert ledger.counts("e-1") == {"failed": 24}


def test_figures_that_cannot_be_read_are_left_out_of_the_decision(
    farm: Settings, ledger: Ledger, caplog: pytest.LogCaptureFixture
) -> None:
    finished_round(ledger, experiment(blocks=3, target_interval=0.05, max_blocks=9))
    damage(farm, "update figures set body = 'damaged' where job_id = (select min(job_id) from figures)")
    assert FurtherJobs(ledger, NO_FILES).run() >= 1, "whichever cell it was of, the decision is made"
    assert "figures.body 'damaged' cannot be read" in caplog.text and "judging_failed" not in caplog.text


def test_an_experiment_that_cannot_be_judged_ends_with_what_it_has(
    farm: Settings, ledger: Ledger, caplog: pytest.LogCaptureFixture
) -> None:
    finished_round(ledger, experiment(blocks=3, target_interval=0.05, max_blocks=9))
    done = ledger.counts("e-1")["ok"]
    damage(farm, "update experiments set spec = 'damaged'")
    assert FurtherJobs(ledger, NO_FILES).run() == 0
    assert "judging_failed" in caplog.text
    assert ledger.counts("e-1") == {"ok": done}


def damage(farm: Settings, statement: str) -> None:
    with closing(sqlite3.connect(farm.ledger.removeprefix("sqlite:///"))) as database:
        database.execute(statement)
        database.commit()


def test_rounds_read_figures_and_no_record_and_nothing_without_news(
    farm: Settings, redis: Redis, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    figures_of = Ledger.figures_of
    monkeypatch.setattr(Ledger, "figures_of", lambda self, ids: (read.extend(ids), figures_of(self, ids))[1])
    monkeypatch.setattr("orchestrator.ledger.records.stored", lambda _: pytest.fail("a record was read"))
    log = Log(farm, redis, noisy, serials="A")
    submit(ledger, log.host, experiment(blocks=12, target_interval=0.05, max_blocks=15))
    scheduler = Scheduler(farm, ledger, redis)
    log.run(scheduler, ledger)
    assert len(set(read)) == 50, "all but the last block: nothing was left to decide after it"
    before = len(read)
    for _ in range(20):
        scheduler.tick()
    assert len(read) == before


def test_rounds_of_an_older_ledger_count_the_blocks_that_have_no_figures_yet(farm: Settings, ledger: Ledger) -> None:
    finished_round(ledger, experiment(blocks=12, target_interval=0.05), ms=lambda job: 10.0)
    damage(farm, "delete from figures")
    assert FurtherJobs(ledger, NO_FILES).run() == 0 and ledger.counts("e-1") == {"ok": 48}, (
        "all are as precise as was asked"
    )


def test_submitting_keeps_the_reserve_and_resuming_finds_it(
    farm: Settings, redis: Redis, ledger: Ledger, tmp_path: Path
) -> None:
    Inventory(redis).announce_device(make.device("A"))
    wanted = experiment(blocks=2, target_interval=0.1)
    first = acts.submit(site(farm, ledger, redis), ME, wanted, tmp_path)
    resumed = acts.submit(site(farm, ledger, redis), ME, wanted, tmp_path)
    assert resumed.resumed and resumed.expansion.jobs == first.expansion.jobs
    assert len(first.expansion.reserve) == 1 and resumed.expansion.reserve == first.expansion.reserve
