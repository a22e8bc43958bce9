"""`farm enrol` and the profile in `farm devices`, without a running farm and on this host's own device."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from redis import Redis

from farm.cli import main
from orchestrator.coordination.inventory import Inventory
from orchestrator.model.enrolment import Enrolment, NodeFact, SamplerCost
from orchestrator.model.power import Estimate, GaugeCalibration
from tests.unit.orchestrator import make
from workers.devices.workstation import CPU_SERIAL
from workers.enrolment import store

from .conftest import Cli

FOUND = Enrolment(
    serial="A",
    fingerprint="maker/a:14/1:user",
    enrolled_at=1.0,
    nodes=(
        NodeFact(path="/sys/class/power_supply/battery/current_now", value="-45000"),
        NodeFact(path="/sys/class/kgsl/kgsl-3d0/gpuclk", error="Permission denied"),
    ),
    permissions={"root": False, "write_settings": True},
    gauge=GaugeCalibration(ampere_per_unit=1e-3, discharging_sign=1, method="load steps"),
    reference_temp_c=24.5,
    sampler=SamplerCost(
        period_ns=10**8, latency_share=Estimate(value=0.001, low=-0.002, high=0.004, std=0.001), cpu_share=0.002
    ),
)


@pytest.fixture
def no_farm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder on which nothing runs."""
    monkeypatch.setenv("FARM_STATE", str(tmp_path))
    monkeypatch.delenv("FARM_REDIS_URL", raising=False)
    return tmp_path


def test_a_stored_profile_is_shown_without_a_farm(no_farm: Path, cli: Cli) -> None:
    store.save(no_farm, FOUND)
    code, out, _ = cli("devices", "A", "--json")
    assert code == 0
    shown = json.loads(out)
    assert shown["facts"] is None and Enrolment.model_validate(shown["enrolment"]) == FOUND
    code, out, err = cli("devices", "A")
    text = " ".join(out.split())
    assert "mA, positive while it discharges" in text and "gpuclk (Permission denied)" in text
    assert "relative only" in text and "24.5 C" in text and "accepted" in text
    assert "no farm runs" in err


def test_a_device_that_was_never_enrolled_needs_a_farm(no_farm: Path, cli: Cli) -> None:
    code, out, _ = cli("devices", "B", "--json")
    assert code == 1 and "farm up" in json.loads(out)["error"]["remedy"]


def test_a_profile_is_announced_and_shown(redis: Redis, cli: Cli) -> None:
    Inventory(redis).announce_device(make.device("A").model_copy(update={"enrolment": FOUND}))
    assert json.loads(cli("devices", "A", "--json")[1])["enrolment"]["gauge"]["ampere_per_unit"] == 1e-3
    assert "mA, positive" in cli("devices", "A")[1]


def test_this_host_is_enrolled(no_farm: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A workstation has no gauge, and that is no failure; its counters are named with what they need."""
    assert main(["enrol", CPU_SERIAL, "--quick", "--json"]) == 0
    found = Enrolment.model_validate_json(capsys.readouterr().out)
    assert found.serial == CPU_SERIAL and found.gauge is None and found.nodes == ()
    sources = {fact.source: fact for fact in found.sources}
    assert sources["rapl"].usable or "RAPL" in sources["rapl"].reason or "energy_uj" in sources["rapl"].reason
    assert store.load(no_farm, CPU_SERIAL, found.fingerprint) == found


def test_a_device_that_is_not_there(no_farm: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["enrol", "local-nothing", "--quick", "--json"]) == 1
    assert "local-cpu" in json.loads(capsys.readouterr().out)["error"]["message"]
