"""A fault in the middle of a run costs time, never a job or a record, and never a second result.

The farm's ledger is on PostgreSQL; test_campaign has the same faults on SQLite.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orchestrator.coordination.inventory import Inventory
from orchestrator.ledger import Ledger
from tests.servers import PostgresServer, postgres_server
from tests.waiting import eventually
from virtual_phones.faults import Fault, KillAgent, Reboot, Unplug

from .running_farm import RunningFarm, running_farm

pytestmark = [pytest.mark.slow, pytest.mark.long]
SAMPLES = 300
"""Some two seconds on one core."""


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    with postgres_server(tmp_path_factory.mktemp("postgres")) as server:
        yield server


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory, postgres: PostgresServer) -> Iterator[RunningFarm]:
    ledger = {"FARM_LEDGER_URL": postgres.url}
    with running_farm(tmp_path_factory.mktemp("farm"), phones=2, more=ledger) as started:
        started.forget("FARM_LEDGER_URL")  # another terminal knows the state folder alone
        yield started


TRAINING = """\
name: {name}
workload:
  network: classifier_784
  parameters: {{hidden: [200, 100], inputs: 64}}
  training:
    dataset: {{inputs: set.npz, held_out: 20 %}}
    epochs: {epochs}
    batch: 8
    seed: 5
    checkpoint: 5
devices: {{where: 'serial == "{serial}"', count: any}}
matrix: {{backend: cpu, threads: 1}}
sampling: {{deadline: 10 min}}
conditions: {{battery_temp_max: 60 C, thermal_status_max: 6}}
"""
EPOCHS = 60


def in_the_middle(farm: RunningFarm, folder: Path, name: str, fault: Fault) -> str:
    """Submit a job, and let a fault loose on its phone while it measures; the experiment. Until then all phones are so
    slow that the fault meets it, whatever this machine does meanwhile."""
    farm.brake(0.1)
    experiment = farm.submit(folder, name, samples=SAMPLES)
    progress = eventually(farm.running, what=f"{name} does not measure")
    farm.phones.fault(progress.serial, fault)
    farm.brake(1.0)
    return experiment


def the_result(records: list[dict[str, Any]], samples: int = SAMPLES) -> dict[str, Any]:
    """The one record that was measured to its end; complete, and from the newest fencing token. A busy machine may make
    it invalid: that is no fault of the farm's."""
    good = [record for record in records if record["outcome"] in ("ok", "invalid")]
    assert len(good) == 1, [(record["outcome"], record["reasons"]) for record in records]
    assert len([sample for sample in good[0]["samples"] if sample["phase"] == "timed"]) == samples
    assert good[0]["token"] == max(record["token"] for record in records)
    assert good[0]["source"] == "virtual"
    return good[0]


def test_a_short_unplug_is_ridden_out(farm: RunningFarm, tmp_path: Path) -> None:
    experiment = in_the_middle(farm, tmp_path, "unplugged", Unplug(seconds=3))
    record = the_result(farm.until_finished(experiment))
    assert record["attempt"] > 1 or "resumed" in {doubt["code"] for doubt in record["doubts"]}


def test_a_reboot_leads_to_another_attempt(farm: RunningFarm, tmp_path: Path) -> None:
    experiment = in_the_middle(farm, tmp_path, "rebooted", Reboot(seconds=3))
    records = farm.until_finished(experiment)
    assert the_result(records)["attempt"] == 2
    assert [record["outcome"] for record in records if record["attempt"] == 1] == ["lost"]


def test_a_killed_agent_is_an_outcome(farm: RunningFarm, tmp_path: Path) -> None:
    experiment = in_the_middle(farm, tmp_path, "killed", KillAgent())
    (record,) = farm.until_finished(experiment)
    assert record["outcome"] == "killed"
    assert record["samples"], "what was measured before is kept"


def test_a_training_of_a_killed_worker_goes_on_bit_for_bit(farm: RunningFarm, tmp_path: Path, seed: int) -> None:
    """The next worker's attempt takes up the checkpoint on the phone, and leaves the model of a run let alone."""
    data = np.random.default_rng(seed).integers(0, 256, (2500, 8, 8), dtype=np.uint8)
    np.savez(tmp_path / "set.npz", x_train=data, y_train=data.reshape(-1, 64)[:, :10].argmax(axis=1))
    with farm.redis() as redis:
        phone = next(one.serial for one in Inventory(redis).devices() if one.facts.source == "virtual")

    def submitted(name: str) -> str:
        file = tmp_path / f"{name}.yaml"
        file.write_text(TRAINING.format(name=name, serial=phone, epochs=EPOCHS))
        return str(farm.cli("run", str(file))["experiment"])

    (whole,) = farm.until_finished(submitted("whole"))
    farm.brake(0.1)
    experiment = submitted("parts")
    progress = eventually(lambda: (found := farm.running()) and found.done >= 20 and found, what="it does not train")
    assert progress.serial == phone
    (worker,) = farm.part("worker")
    worker.kill()
    farm.phones.fault(phone, KillAgent())  # or it might end before the next worker comes
    farm.brake(1.0)
    records = farm.until_finished(experiment)
    rest = max(records, key=lambda record: record["token"])
    assert whole["outcome"] == rest["outcome"] == "ok", (whole["reasons"], rest["reasons"])
    assert rest["attempt"] > 1 and len(rest["earlier"]) > 0 and 0 < len(rest["samples"]) < EPOCHS, "it began anew"
    assert rest["trained"]["onnx_sha256"] == whole["trained"]["onnx_sha256"]
    epochs = [(one["stage"], one["epoch"], one["loss"]) for one in (*rest["earlier"], *rest["samples"])]
    assert epochs == [(one["stage"], one["epoch"], one["loss"]) for one in whole["samples"]]


def test_a_killed_postgres_costs_time_alone(farm: RunningFarm, postgres: PostgresServer, tmp_path: Path) -> None:
    """One job runs and one waits for the same phone when the ledger dies: what users type does not change."""
    assert not (farm.state / "ledger.sqlite").exists()
    phone = farm.phones.phones()[0].name
    farm.brake(0.1)
    experiments = [farm.submit(tmp_path, f"e{number}", where=f'serial == "{phone}"', samples=300) for number in (1, 2)]
    eventually(farm.running, what="nothing measures")
    postgres.stop(kill=True)
    farm.brake(1.0)
    status = farm.cli("status", status=1)
    assert status["error"]["cause"] == "service_down", status
    postgres.start()
    for experiment in experiments:
        ended = farm.cli("watch", experiment, "--timeout", "90 s", status=None)
        assert ended["outcomes"]["ok"] + ended["outcomes"]["invalid"] == 1, ended
    with Ledger(postgres.url) as ledger:
        for experiment in experiments:
            good = [each for each in ledger.records(experiment) if each.outcome in ("ok", "invalid")]
            assert len(good) == 1, good
