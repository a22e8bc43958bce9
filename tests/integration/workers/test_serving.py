"""Queueing experiments on devices: real agents that stay resident, behind a real adb server."""

from __future__ import annotations

import getpass
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from device_agent.virtual.faults import Unplug
from farm import serving
from orchestrator.config import Settings
from orchestrator.errors import DeviceBusy, NoData, SpecError, Unsupported
from orchestrator.ledger import Ledger
from orchestrator.queueing.measures import measure
from orchestrator.queueing.requests import DONE, LOST
from orchestrator.queueing.spec import QueueingSpec, parse
from tests import phones as mending
from tests.waiting import eventually
from workers.session import owner

from .conftest import Wiring

HELD = {"kind": "gamma", "mean": "40 ms", "cv": 0.5}


def make(**more: Any) -> QueueingSpec:
    data = {
        "name": "live",
        "servers": [{"name": "phone", "devices": 'kind == "phone"'}],
        "classes": [{"name": "a", "arrivals": {"kind": "poisson", "rate": 15}, "service": HELD}],
        "duration": "3 s",
        "warm_up": "none",
        **more,
    }
    return parse(yaml.safe_dump(data), "live")


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(f"sqlite:///{tmp_path / 'ledger.sqlite'}") as opened:
        yield opened


def run(spec: QueueingSpec, settings: Settings, ledger: Ledger) -> serving.OnDevices:
    return serving.run_on_devices(spec, settings, ledger, lambda _: None)


def test_on_a_phone(lab: Wiring, lab_settings: Settings, ledger: Ledger) -> None:
    """Inferences of a network, and time that is held, of which latency counts from the intended arrival; the phone is
    held meanwhile, tells its power, and is left as it was."""
    lenet = {
        "name": "b",
        "arrivals": {"kind": "deterministic", "rate": 10},
        "infer": {"network": "lenet", "backend": "cpu"},
    }
    spec = make(classes=[*make().model_dump(mode="json", exclude_none=True)["classes"], lenet], batch={"size": 2})
    holds: list[str] = []
    watch = threading.Timer(2.5, lambda: holds.extend(f"{each.serial} {each.who}" for each in ledger.holds()))
    watch.start()
    ran = run(spec, lab_settings, ledger)
    watch.join()
    assert holds == [f"{lab.serial} {getpass.getuser()}"] and ledger.holds() == []
    (live,), (phone,) = ran.runs, ran.residents
    rows = live.run.requests
    assert set(rows.column("kind")) == {0, 1} and set(rows.column("outcome")) == {DONE}
    assert (rows.column("admitted") >= rows.column("intended")).all()
    assert (rows.sojourn_s >= rows.column("served_s")).all()
    held = rows.of(rows.column("kind") == 0)
    assert 0.02 < held.column("served_s").mean() < 0.1
    assert set(phone.plans) == {"1x1", "1x2"} and phone.expected_s["1x1"] > 0
    assert phone.state_before and phone.state_after and phone.error is None
    assert len(phone.wire.readings) > 10 and phone.wire.readings[-1].temp_c is not None  # type: ignore[union-attr]
    assert (rows.column("energy_j") > 0).all(), "the phone tells its power from before the first to after the last"
    total = measure(spec, [live.run]).total
    assert total.energy_j_per_request.value and total.energy_with_idle_j_per_request.value
    assert total.energy_with_idle_j_per_request.value > total.energy_j_per_request.value
    assert owner.keeper_of(lab.connection, owner.Claimant("another")) is None
    agents = lab.connection.shell(["pgrep", "-f", "pocketfarm-agent serve"])
    assert agents.stdout == b"", "its agent stayed behind"


def test_a_phone_that_dies_is_a_result(lab: Wiring, lab_settings: Settings, ledger: Ledger) -> None:
    """What it served is lost and told; who waited in its line is served by the other one."""
    second = lab.phones.phones[1].serial
    mending.connect(lab.server, second)
    spec = make(
        servers=[{"name": "phone", "count": 2, "devices": 'kind == "phone"'}],
        classes=[{"name": "a", "arrivals": {"kind": "poisson", "rate": 30}, "service": HELD}],
        policy={"name": "round_robin"},
        duration="4 s",
    )
    fault = threading.Event()

    def unplug() -> None:
        eventually(lambda: len(ledger.holds()) == 2, what=lambda: "no hold")
        fault.wait(3.5)
        lab.phones.control.fault(second, Unplug(seconds=60.0))

    killer = threading.Thread(target=unplug)
    killer.start()
    began = time.monotonic()
    ran = run(spec, lab_settings, ledger)
    killer.join()
    rows, (doubt,) = ran.runs[0].run.requests, ran.runs[0].run.doubts
    assert "went away" in doubt and time.monotonic() - began < 60
    lost = rows.of(rows.column("outcome") == LOST)
    assert len(lost) <= 1, "only what it served is lost"
    assert set(rows.column("outcome")) <= {DONE, LOST}
    left = {each.member.facts.serial: each.error for each in ran.residents}
    assert len(left) == 2
    servers = [set(part.column("server")) for part in (rows.between(0, 0.5), rows.between(3.5, 4.0))]
    assert servers == [{0.0, 1.0}, {0.0}] or servers == [{0.0, 1.0}, {1.0}]


def test_what_is_refused(lab: Wiring, lab_settings: Settings, ledger: Ledger) -> None:
    with pytest.raises(SpecError, match="names no devices"):
        run(make(servers=[{"name": "s"}]), lab_settings, ledger)
    with pytest.raises(Unsupported, match="preemption"):
        run(make(preemption="resume"), lab_settings, ledger)
    with pytest.raises(NoData, match="needs 7 devices"):
        run(make(servers=[{"name": "s", "count": 7, "devices": "true"}]), lab_settings, ledger)
    ledger.hold(["local-cpu"], "somebody else")
    with pytest.raises(NoData, match="needs 1 devices, and 0 are free"):
        run(make(servers=[{"name": "s", "devices": 'kind == "workstation"'}]), lab_settings, ledger)
    with pytest.raises(DeviceBusy, match="is held"), serving.held(ledger, ["local-cpu"], "n", 1.0):
        pass
