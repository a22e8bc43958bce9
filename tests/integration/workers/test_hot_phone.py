"""A phone that is too hot for a job: scheduler, ledger and Redis on one side, a session with a phone on the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from redis import Redis

from orchestrator.coordination.client import client_of
from orchestrator.coordination.inventory import Inventory
from orchestrator.coordination.leases import Leases
from orchestrator.ledger import Ledger
from orchestrator.model.device import Api, Health
from orchestrator.model.experiment import Conditions, DeviceChoice, Experiment, Matrix, Sampling, Workload
from orchestrator.model.live.announcement import PROTOCOL, HostAnnouncement
from orchestrator.scheduling.scheduler import Scheduler, TickReport
from orchestrator.spec.expansion.expand import expand
from orchestrator.system.config import Settings
from tests.integration.orchestrator.hosts import send
from tests.phones import connect, disconnect
from tests.servers import private_redis
from tests.waiting import LIMIT_S
from virtual_phones.control import PhoneStatus
from virtual_phones.faults import ThermalTrip
from workers.devices.fleet import Fleet
from workers.discovery.watch import Discovery
from workers.engines import Engines, Host
from workers.execution.run_job import Workbench, run_job

from .conftest import Wiring


class Farm:
    """A scheduler and a host, one step after the other."""

    def __init__(self, settings: Settings, ledger: Ledger, redis: Redis, lab: Wiring) -> None:
        self.ledger, self.redis = ledger, redis
        self.leases, self.inventory = Leases(redis), Inventory(redis)
        self.scheduler = Scheduler(settings, ledger, redis)
        self.fleet = Fleet()
        self.discovery = Discovery(self.fleet, settings, lab.server)
        self.bench = Workbench(settings, self.fleet, Engines(Host.alone(settings.state)), "w")

    def submit(self, name: str, where: str, thermal_status_max: int, count: str = "all") -> None:
        experiment = Experiment(
            name=name,
            workload=Workload(network="lenet"),
            devices=DeviceChoice(where=where, count=count),
            matrix=Matrix(backend=(Api.CPU,)),
            sampling=Sampling(blocks=1, samples=1),
            conditions=Conditions(thermal_status_max=thermal_status_max, battery_temp_max=100.0),
        )
        self.ledger.submit(name, experiment, expand(experiment, name, self.inventory.devices()).jobs)

    def announce(self) -> None:
        self.discovery.tick()
        self.inventory.announce_host(
            HostAnnouncement(host="testhost", worker="w", pid=1, protocol=PROTOCOL, seen_at=time.time())
        )
        for device in self.fleet.devices():
            self.inventory.announce_device(device)

    def turn(self) -> tuple[TickReport, list[str]]:
        """The scheduler decides and the host does it; the experiments that were served."""
        report = self.scheduler.tick()
        for made in report.placed:
            assignment = self.leases.claim(made.serial, made.token, "w")
            assert assignment is not None
            record = run_job(assignment, self.bench, lambda: None, lambda *_: None)
            send(self.redis, record, record.device.host)
            self.leases.release(made.serial, made.token)
        return report, [made.job.experiment_id for made in report.placed]

    def why(self, report: TickReport, experiment: str) -> str:
        (job,) = self.ledger.jobs(experiment)
        return report.waiting[job.job_id].text if job.job_id in report.waiting else ""

    def until(self, look: Callable[[], object], limit_s: float = LIMIT_S) -> None:
        """Returns when it is so and was announced: the host looks at phones in the background as well."""
        end = time.monotonic() + limit_s
        while not look():
            assert time.monotonic() < end, self.fleet.devices()
            time.sleep(0.05)
            self.announce()
        self.announce()


@pytest.fixture
def farm(lab_settings: Settings, lab: Wiring, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Farm]:
    monkeypatch.setattr("workers.discovery.watch.REFRESH_S", 0.2)
    monkeypatch.setattr("orchestrator.ledger.blame.PAUSES_S", {})
    with private_redis(tmp_path / "redis") as url:
        settings = lab_settings.model_copy(update={"redis_url": url})
        with Ledger(settings.ledger) as ledger, client_of(settings) as redis:
            yield Farm(settings, ledger, redis, lab)


@pytest.fixture
def pixel(lab: Wiring) -> Iterator[PhoneStatus]:
    phone = lab.phones.phones[1]
    connect(lab.server, phone.serial)
    yield phone
    disconnect(lab.server, phone.serial)


def test_its_job_waits_until_it_has_cooled_and_others_go_first(farm: Farm, lab: Wiring, pixel: PhoneStatus) -> None:
    def health() -> dict[str, Health]:
        return {device.serial: device.state.health for device in farm.fleet.devices()}

    def thermal_status() -> int | None:
        return next(device.state.thermal_status for device in farm.fleet.devices() if device.serial == pixel.name)

    farm.until(lambda: health().get(pixel.name) == health().get(lab.serial) == Health.READY)
    on_pixel = f'serial == "{pixel.name}"'
    farm.submit("strict", on_pixel, thermal_status_max=1)
    lab.phones.control.fault(pixel.name, ThermalTrip(seconds=3600))  # after its last announcement
    _, served = farm.turn()
    assert served == ["strict"]

    farm.announce()
    farm.submit("anywhere", 'source == "virtual"', thermal_status_max=1, count="any")
    report, served = farm.turn()
    assert served == ["anywhere"]
    assert [made.serial for made in report.placed] == [lab.serial], "not on the hot phone"
    assert farm.why(report, "strict").startswith("cooling: thermal status 3, above 1, ready at about ")

    farm.fleet.defer(pixel.name, time.time(), "")  # what was predicted is over
    farm.until(lambda: thermal_status() == 3)
    farm.submit("lax", on_pixel, thermal_status_max=6)
    turns: list[tuple[TickReport, list[str]]] = []

    def somebody_is_served() -> bool:
        turns.append(farm.turn())
        return bool(turns[-1][1])

    farm.until(somebody_is_served)
    assert turns[-1][1] == ["lax"], "it may go while the phone is hot"
    assert farm.why(farm.scheduler.tick(), "strict") == "thermal status 3, the experiment wants at most 1"

    lab.phones.control.clear(pixel.name)
    lab.phones.control.fault(pixel.name, ThermalTrip(temp_c=24.0))
    farm.until(somebody_is_served)
    assert turns[-1][1] == ["strict"]
    farm.scheduler.tick()
    assert farm.ledger.counts() == {"ok": 3}
    (job,) = farm.ledger.jobs("strict")
    assert job.attempts == 2
