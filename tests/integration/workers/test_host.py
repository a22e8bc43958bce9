"""The host process with a real Redis, a real broker and this machine as its device."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest
from redis import Redis

from orchestrator.coordination import keys
from orchestrator.coordination.client import client_of
from orchestrator.coordination.inventory import Inventory
from orchestrator.coordination.leases import Leases
from orchestrator.coordination.tasks.queue import Placed, make_app, send
from orchestrator.model.device import Device, Health
from orchestrator.model.experiment import Conditions, Measure, Sampling, Workload
from orchestrator.model.job import Cell, Job
from orchestrator.model.live.lease import Assignment
from orchestrator.model.record import Outcome, Record
from orchestrator.system.config import Settings
from tests.servers import RedisServer
from tests.waiting import LIMIT_S, eventually
from workers import host
from workers.devices.workstation import CPU_SERIAL

from .jobs import ok

ROOT = Path(__file__).parents[3]
WORKER = [sys.executable, "-m", "workers.host"]
Value = TypeVar("Value")


class Farm:
    """A farm that does by hand what a scheduler would do."""

    def __init__(self, settings: Settings, redis: Redis, server: RedisServer) -> None:
        self.settings, self.redis, self.redis_server = settings, redis, server
        self.inventory, self.leases = Inventory(redis), Leases(redis)
        self.app = make_app(settings)
        self.log = settings.state / "host.log"
        self.token = 0
        self.process: subprocess.Popen[bytes] | None = None
        self.environment = {
            **os.environ,
            "FARM_STATE": str(settings.state),
            "FARM_REDIS_URL": settings.redis_url,
            "FARM_HOST": settings.host,
            "FARM_ADB_PORT": str(settings.adb_port),
        }

    def start(self) -> None:
        """Its host's process, if it does not run; ready: it has announced this machine's device."""
        if self.process is not None and self.process.poll() is None:
            return
        self.settings.state.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            started = self.process = subprocess.Popen(WORKER, cwd=ROOT, env=self.environment, stderr=log)
        self.until(lambda: started.pid in {each.pid for each in self.inventory.hosts()} and self.device())

    def free(self) -> None:
        """Take the device from a job that a failed test has left running; returns when its session has ended."""

        def idle() -> bool:
            running = [job_id for host in self.inventory.hosts() for _, job_id, *_ in host.running]
            for job_id in running:
                self.redis.sadd(keys.CANCELLED, job_id)
            return not running

        self.until(idle)
        for serial, lease in self.leases.all().items():
            self.leases.release(serial, lease.token)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait(60)

    def device(self) -> Device | None:
        return next((device for device in self.inventory.devices() if device.serial == CPU_SERIAL), None)

    def until(self, look: Callable[[], Value], limit_s: float = LIMIT_S) -> Value:
        return eventually(look, limit_s, what=lambda: f"the host said:\n{self.log.read_text()[-3000:]}")

    def assign(self, *, samples: int = 5, ttl_s: float = 15.0) -> Assignment:
        """Lease the device under the next token, and send the host its task."""
        self.token += 1
        job = Job(
            experiment_id="e1",
            cell=Cell(workload=Workload(network="lenet"), backend="opencl"),
            block=self.token,
            candidates=(CPU_SERIAL,),
            sampling=Sampling(warmup=0, samples=samples, deadline=100.0),
            conditions=Conditions(),
            measure=Measure(),
        )
        made = Assignment(
            serial=CPU_SERIAL,
            host=self.settings.host,
            job_id=job.job_id,
            job=job,
            attempt=1,
            token=self.token,
            ttl_s=ttl_s,
        )
        self.until(lambda: self.leases.acquire(made))
        self.send(made)
        return made

    def send(self, made: Assignment, token: int = 0) -> None:
        placed = Placed(made.job_id, made.attempt, made.serial, token or made.token)
        send(self.settings.host, placed, by=self.app)

    def records(self) -> list[Record]:
        return [
            Record.model_validate_json(fields["record"])
            for _, fields in self.redis.xrange(keys.records(self.settings.host))
        ]

    def record(self, made: Assignment) -> Record:
        """Wait for the record of one assignment."""
        return self.until(lambda: [each for each in self.records() if each.token == made.token])[0]

    def running(self) -> bool:
        return any(progress.phase == "running" and progress.done for progress in self.inventory.progress())


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Farm]:
    folder = tmp_path_factory.mktemp("farm")
    with RedisServer(folder / "redis") as server:
        settings = Settings(state=folder / "state", host="testhost", adb_port=1, redis_url=server.url)
        with client_of(settings) as redis:
            farm = Farm(settings, redis, server)
            yield farm
            farm.kill()


@pytest.fixture
def hosted(shared: Farm) -> Farm:
    """Its host runs and is idle; tests share it, and one that ends it costs the next one a start."""
    shared.redis_server.mend()
    shared.start()
    shared.free()
    return shared


def test_a_task_becomes_one_record(hosted: Farm) -> None:
    (device,) = hosted.inventory.devices()
    assert device.state.health == Health.READY
    (announced,) = hosted.inventory.hosts()
    assert "port 1" in announced.adb
    made = hosted.assign()
    hosted.send(made)  # doubled: harmless
    hosted.send(made, made.token - 1)  # of a lease that never was
    record = hosted.record(made)
    assert (record.outcome, record.job_id) == (Outcome.OK, made.job_id), record.reasons
    hosted.until(lambda: not hosted.leases.all())
    spooled = hosted.settings.state / "spool" / f"{made.job_id}-1.json"
    hosted.until(spooled.exists)  # nobody answers: it is kept until the ledger has it
    hosted.redis.set(keys.receipt(hosted.settings.host, f"{made.job_id}:1"), "new")
    hosted.until(lambda: not spooled.exists())
    assert [each.token for each in hosted.records() if each.token in (made.token, made.token - 1)] == [made.token]


def test_a_host_that_cannot_write_its_spool_claims_nothing(hosted: Farm) -> None:
    spool, aside = hosted.settings.state / "spool", hosted.settings.state / "aside"
    if spool.exists():
        spool.rename(aside)
    spool.write_text("a file in the folder's place")
    try:
        sick = hosted.until(lambda: (found := hosted.device()) and found.state.health == Health.SICK and found)
        assert f"its host {hosted.settings.host} cannot keep records" in sick.state.reason
        made = hosted.assign()
        hosted.until(lambda: "no work is taken" in hosted.log.read_text())
        assert [lease.holder for lease in hosted.leases.all().values()] == [""]
    finally:
        spool.unlink()
        if aside.exists():
            aside.rename(spool)
    hosted.until(lambda: (found := hosted.device()) and found.state.health == Health.READY)
    hosted.send(made)
    assert hosted.record(made).outcome == Outcome.OK


def test_cancelled_in_mid_run(hosted: Farm) -> None:
    made = hosted.assign(samples=100_000)
    hosted.until(hosted.running)
    hosted.redis.sadd(keys.CANCELLED, made.job_id)
    assert hosted.record(made).outcome == Outcome.CANCELLED


def test_a_superseded_session_leaves_no_record(hosted: Farm) -> None:
    first = hosted.assign(samples=100_000)
    hosted.until(hosted.running)
    assert hosted.leases.release(CPU_SERIAL, first.token)  # as if it had been reaped
    second = hosted.assign()
    assert hosted.record(second).outcome == Outcome.OK
    assert first.token not in {record.token for record in hosted.records()}


def test_a_wiped_redis_costs_no_record(hosted: Farm) -> None:
    made = hosted.assign(samples=20_000, ttl_s=6.0)
    hosted.until(hosted.running)
    hosted.redis.flushall()
    assert ok(hosted.record(made)).job_id == made.job_id
    hosted.until(lambda: hosted.inventory.hosts() and hosted.inventory.devices())


def test_a_second_worker_of_the_same_host_is_refused(
    hosted: Farm, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("workers.host.settings", lambda: hosted.settings)
    assert host.main() == 2
    assert "runs already" in capsys.readouterr().err


def test_a_killed_worker_is_replaced_and_the_stale_agent_ended(hosted: Farm) -> None:
    killed = hosted.assign(samples=100_000)
    hosted.until(hosted.running)
    hosted.kill()
    hosted.leases.release(CPU_SERIAL, killed.token)
    hosted.start()
    made = hosted.assign()
    record = hosted.record(made)
    assert record.outcome == Outcome.OK, record.reasons
    assert killed.token not in {each.token for each in hosted.records()}


def test_sigterm_in_mid_run_ends_everything_in_order(hosted: Farm) -> None:
    made = hosted.assign(samples=100_000)
    hosted.until(hosted.running)
    assert hosted.process is not None
    hosted.process.send_signal(signal.SIGTERM)
    assert hosted.process.wait(60) == 0
    record = hosted.record(made)
    assert (record.outcome, record.cause) == (Outcome.LOST, "host_stopping")
    assert not hosted.leases.all()
    assert "Traceback" not in hosted.log.read_text()
