"""What goes wrong in the middle of a run costs time, never a job or a record, and never a second result."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from device_agent.virtual.faults import KillAgent, Reboot, Unplug
from tests.waiting import eventually

from .running_farm import RunningFarm, running_farm

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
SAMPLES = 1000
"""Some five seconds on one core: long enough to be hit in the middle."""


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningFarm]:
    with running_farm(tmp_path_factory.mktemp("farm"), phones=2) as started:
        yield started


def in_the_middle(farm: RunningFarm, folder: Path, name: str) -> tuple[str, str]:
    """Submit a job and wait until it measures on a virtual phone; the experiment and the phone."""
    experiment = farm.submit(folder, name, samples=SAMPLES)
    progress = eventually(farm.running, what=f"{name} does not measure")
    return experiment, progress.serial


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
    experiment, phone = in_the_middle(farm, tmp_path, "unplugged")
    farm.phones.fault(phone, Unplug(seconds=3))
    record = the_result(farm.until_finished(experiment))
    assert record["attempt"] > 1 or "resumed" in {doubt["code"] for doubt in record["doubts"]}


def test_a_reboot_leads_to_another_attempt(farm: RunningFarm, tmp_path: Path) -> None:
    experiment, phone = in_the_middle(farm, tmp_path, "rebooted")
    farm.phones.fault(phone, Reboot(seconds=3))
    records = farm.until_finished(experiment)
    assert the_result(records)["attempt"] == 2
    assert [record["outcome"] for record in records if record["attempt"] == 1] == ["lost"]


def test_a_killed_agent_is_an_outcome(farm: RunningFarm, tmp_path: Path) -> None:
    experiment, phone = in_the_middle(farm, tmp_path, "killed")
    farm.phones.fault(phone, KillAgent())
    (record,) = farm.until_finished(experiment)
    assert record["outcome"] == "killed"
    assert record["samples"], "what was measured before is kept"
