"""Jobs that follow by results: a user's own strategy through the scheduler, and what its faults do."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from redis import Redis
from typer.testing import CliRunner

from farm.cli.app import application
from orchestrator import acts, spec
from orchestrator.ledger import Ledger
from orchestrator.model.device import Api
from orchestrator.model.errors import SpecError
from orchestrator.model.event import Sample
from orchestrator.model.experiment.strategy import StrategyChoice
from orchestrator.model.live.lease import Assignment
from orchestrator.model.record import Outcome, Record
from orchestrator.report.gathering import gather
from orchestrator.scheduling.scheduler import Scheduler
from orchestrator.scheduling.strategies import Place, Result, foreign_process, own
from orchestrator.system.config import Settings
from tests.unit.orchestrator import make
from tests.waiting import eventually

from .hosts import Host, answered
from .sites import ME, site

EXAMPLE = Path(__file__).parents[3] / "examples" / "strategies"
MOST_FRAMES_PER_S = {"A": 100.0, "B": 200.0}
"""The limit of each device: it takes 10 ms for an inference, and for larger batches as long as this says."""


@pytest.fixture
def ledger(farm: Settings) -> Iterator[Ledger]:
    with Ledger(farm.ledger, rest_s=0.0) as opened:
        yield opened


def measured(assignment: Assignment) -> Record:
    batch = assignment.job.cell.batch or 1
    seconds = max(0.010, batch / MOST_FRAMES_PER_S[assignment.serial])
    sample = Sample(seq=0, t_ns=0, index=0, phase="timed", start_ns=0, duration_ns=int(seconds * 1e9))
    return answered(assignment, Outcome.OK).model_copy(update={"samples": (sample,)})


def run(
    farm: Settings,
    redis: Redis,
    ledger: Ledger,
    file: Path,
    answer: Callable[[Assignment], Record] = measured,
    turns: int = 60,
) -> str:
    """An experiment to its end, each turn by a scheduler that has never seen it."""
    host = Host(farm, redis, [make.device(serial, make.api(Api.CPU)) for serial in "AB"], answer)
    host.announce()
    experiment_id = acts.submit(site(farm, ledger, redis), ME, spec.load(file), file.parent).experiment_id
    for _ in range(turns):
        host.announce()
        with closing(Scheduler(farm, ledger, redis)) as scheduler:
            scheduler.tick()
        host.claim()
        host.finish()
        if ledger.experiment(experiment_id).finished:
            return experiment_id
    raise AssertionError(f"not finished: {ledger.counts(experiment_id)}")


def test_a_strategy_of_ones_own_decides_for_each_device_by_its_results(
    farm: Settings, redis: Redis, ledger: Ledger
) -> None:
    experiment_id = run(farm, redis, ledger, EXAMPLE / "larger_batches.yaml")
    batches: dict[str, list[int]] = {"A": [], "B": []}
    for row in ledger.jobs(experiment_id):
        batches[row.job.candidates[0]].append(row.job.cell.batch or 1)
    assert batches == {"A": [1, 2], "B": [1, 2, 4]}, "the last one brought nothing more"
    assert ledger.counts(experiment_id) == {"ok": 5}


def test_limits_are_searched_on_each_device_whatever_is_lost_on_the_way(
    farm: Settings, redis: Redis, ledger: Ledger, tmp_path: Path
) -> None:
    """A is killed above 300 and loses every third attempt; B refuses above 90. No kill counts against a device."""
    attempts: Counter[str] = Counter()

    def answer(assignment: Assignment) -> Record:
        serial, n = assignment.serial, assignment.job.cell.value("hidden.0")
        attempts[serial] += 1
        if serial == "A" and attempts["A"] % 3 == 0:
            return answered(assignment, Outcome.LOST, "transport_lost")
        if n > {"A": 300, "B": 90}[serial]:
            ended = (Outcome.KILLED, "killed") if serial == "A" else (Outcome.FAILED, "out_of_memory")
            return answered(assignment, *ended)
        return measured(assignment)

    file = tmp_path / "limits.yaml"
    file.write_text(
        "name: limits\nworkload: {network: autoencoder_784, parameters: {hidden: [64, 250, 10]}}\n"
        "matrix: {backend: cpu}\nstrategy: {limit_search: {dimension: hidden.0, tolerance: 5 %}}\n"
    )
    row = ledger.experiment(run(farm, redis, ledger, file, answer))
    a, b = gather(ledger, row).limits
    assert (a.largest and a.largest.value, a.smallest and a.smallest.value) == (296, 304)
    assert (b.largest and b.largest.value, b.smallest and b.smallest.value) == (88, 92)
    assert a.smallest and b.smallest and (a.smallest.ended, b.smallest.ended) == ("killed", "refused")
    assert a.over and b.over and a.consistent and b.consistent and a.largest and a.largest.weights == 309_120
    assert attempts["A"] > len(a.probes) == 13 and ledger.standing.quarantined() == [] and ledger.stopped() == {}
    killed = [job.job_id for job in ledger.jobs(row.id) if job.outcome == "killed"]
    assert killed and not {*killed} & {*ledger.retry(row.id)}, "a kill answers the search"
    assert ledger.retry(killed[0]) == killed[:1], "asked for by its id, it is tried again"


def test_a_search_that_gave_up_says_why_and_goes_on_after_a_retry(
    farm: Settings, redis: Redis, ledger: Ledger, tmp_path: Path
) -> None:
    lost, patient = True, Ledger(farm.ledger, rest_s=0.0, quarantine_after=1000)

    def answer(assignment: Assignment) -> Record:
        n = assignment.job.cell.value("hidden.0")
        if lost and n == 128 and assignment.serial == "A":
            return answered(assignment, Outcome.LOST, "transport_lost")
        return answered(assignment, Outcome.FAILED, "limit") if n > 128 else measured(assignment)

    file = tmp_path / "limits.yaml"
    file.write_text(
        "name: limits\nworkload: {network: autoencoder_784, parameters: {hidden: [64, 250, 10]}}\n"
        "matrix: {backend: cpu}\nstrategy: {limit_search: {dimension: hidden.0, step: 64}}\n"
    )
    experiment_id = run(farm, redis, patient, file, answer, 200)
    (stopped,) = ledger.stopped()[experiment_id]
    assert stopped.devices == ("A",) and "lost 3 times (transport_lost)" in stopped.why
    assert f"`farm retry {experiment_id}`" in stopped.remedy
    a, b = gather(ledger, ledger.experiment(experiment_id)).limits
    assert (a.over, a.stopped) == (False, True) and (b.over, b.stopped) == (True, False)
    lost = False
    assert len(ledger.retry(experiment_id)) == 5, "three that were lost, and the refusals of B"
    assert ledger.stopped() == {} and not ledger.experiment(experiment_id).finished
    assert run(farm, redis, patient, file, answer, 200) == experiment_id, "it is the one under way"
    a, b = gather(ledger, ledger.experiment(experiment_id)).limits
    assert a.over and b.over and a.largest and a.largest.value == 128 and a.smallest and a.smallest.value == 192
    assert ledger.stopped() == {}
    patient.close()


FILE = """
from orchestrator.strategies import Slot  # as in files for 0.1.0; the example has its name of today

class Strategy:
    done = False

    def __init__(self, place, gain):
        print("heard")

    def tell(self, results):
        self.job = results[0].job

    def ask(self):
        {}
"""


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("while True: pass", "no answer within 0.5 s"),
        ("return [Slot(self.job.cell, self.job.candidates, 0)]", "a second time"),
    ],
)
def test_a_strategy_that_fails_ends_the_experiment_with_what_it_has(
    farm: Settings,
    redis: Redis,
    ledger: Ledger,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    body: str,
    told: str,
) -> None:
    if "within" in told:
        monkeypatch.setattr(own, "LIMIT_S", 0.5)
    (tmp_path / "larger_batches.py").write_text(FILE.format(body))
    file = tmp_path / "mine.yaml"
    file.write_text((EXAMPLE / "larger_batches.yaml").read_text())
    experiment_id = run(farm, redis, ledger, file)
    assert Counter(ledger.counts(experiment_id)) == {"ok": 2}
    assert "judging_failed" in caplog.text
    found = ledger.stopped()[experiment_id]
    assert [each.devices for each in found] == [("A",), ("B",)]
    assert all(told in each.why and "run the experiment again" in each.remedy for each in found)
    for shown in (status(farm, experiment_id), status(farm)):
        assert told in " ".join(shown.split()) and "no more jobs on A" in " ".join(shown.split())
    assert json.loads(status(farm, experiment_id, "--json"))["stopped"][0]["why"] == found[0].why
    assert told in str(gather(ledger, ledger.experiment(experiment_id)).stopped)


def status(farm: Settings, *words: str) -> str:
    """Return what `farm status` prints."""
    asked = ["status", *words, "--state", str(farm.state)]
    return CliRunner().invoke(application("status"), asked, catch_exceptions=False).stdout


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("raise ValueError('no idea')", "ValueError: no idea"),
        ("return ['more']", "in what `ask` returned"),
        ("import os; os._exit(0)", "in what `ask` returned"),
        ("import sys\n        while True: sys.stderr.write('x' * 1000000)", "wrote more than 16 MiB"),
        ("self.large = bytearray(1 << 36)", "MemoryError"),
        ("import sys; sys.stderr.write('x' * 10**6 + '\\nits end\\n'); sys.exit(3)", "its end"),
    ],
)
def test_what_is_wrong_with_a_strategy_is_told(tmp_path: Path, body: str, told: str) -> None:
    job = make.job()
    (tmp_path / "mine.py").write_text(FILE.format(body))
    choice = StrategyChoice(file="mine.py", options={"gain": 1.5})
    place = Place(make.experiment(strategy=choice), "e", job.candidates)
    strategy = own.OwnStrategy(place, tmp_path / "mine.py")
    strategy.tell([Result(job, "ok")])
    with pytest.raises(SpecError, match=f"strategy.file: mine.py: .*{re.escape(told)}"):
        strategy.ask()


def test_nothing_that_a_strategy_starts_stays_behind(tmp_path: Path) -> None:
    """A session of its own, with the pipe in its hands, keeps nothing alive; the answer does not wait for it."""
    started = f"""import subprocess, sys, os
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
        open({str(tmp_path / "pid")!r}, "w").write(str(child.pid))
        self.done = True
        return []"""
    job = make.job()
    (tmp_path / "mine.py").write_text(FILE.format(started))
    choice = StrategyChoice(file="mine.py", options={"gain": 1.5})
    strategy = own.OwnStrategy(Place(make.experiment(strategy=choice), "e", job.candidates), tmp_path / "mine.py")
    strategy.tell([Result(job, "ok")])
    assert strategy.ask() == [] and strategy.done
    pid = (tmp_path / "pid").read_text()
    eventually(lambda: not Path(f"/proc/{pid}").exists() or "Z" in Path(f"/proc/{pid}/stat").read_text().split()[2])


FORKS = """
import os, signal
from orchestrator.scheduling.strategies.foreign_process import limit_this_process
if os.getuid() == 0:  # whom no limit stops
    os.setuid(65534)
limit_this_process()
made = []
try:
    while len(made) < 20_000:
        made.append(os.fork())
        if not made[-1]:
            signal.alarm(100)  # also where the test is interrupted
            signal.pause()
except BlockingIOError:
    pass
for pid in made:
    os.kill(pid, signal.SIGKILL)
print(len(made))
"""


def test_a_strategy_may_start_so_many_processes_and_no_more() -> None:
    done = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True, timeout=100, check=True)
    machine = int(Path("/proc/loadavg").read_text().split()[3].split("/")[1])
    assert 0 < int(done.stdout) < foreign_process.PROCESSES + 2 * machine


def test_a_turn_does_not_wait_for_a_strategy(
    farm: Settings, redis: Redis, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The jobs of others begin while it thinks."""
    asked, go_on = threading.Event(), threading.Event()

    def thinks(self: own.OwnStrategy) -> list[object]:
        asked.set()
        go_on.wait(60)
        self.done = True
        return []

    monkeypatch.setattr(own.OwnStrategy, "ask", thinks)
    host = Host(farm, redis, [make.device(serial, make.api(Api.CPU)) for serial in "AB"], measured)
    host.announce()
    file = EXAMPLE / "larger_batches.yaml"
    mine = acts.submit(site(farm, ledger, redis), ME, spec.load(file), file.parent).experiment_id
    with closing(Scheduler(farm, ledger, redis)) as scheduler:
        for _ in range(3):
            scheduler.tick()
            host.claim()
            host.finish()
        eventually(asked.is_set)
        other = make.many(1, name="other").model_copy(update={"workload": spec.load(file).workload})
        ledger.submit("other-1", other, [make.job("other-1").with_candidates(("A",))])
        assert scheduler.tick().placed or scheduler.tick().placed
        assert not ledger.experiment(mine).finished
        go_on.set()
        eventually(lambda: bool(scheduler.tick()) and ledger.experiment(mine).finished)
