"""Plans on the host's disk, which several processes share: `farm tune` and `farm infer` make room beside the worker."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.model.device import Api
from orchestrator.model.experiment import Workload
from orchestrator.model.job import Cell
from tests.unit.orchestrator import make
from workers.engines.pocketfarm.plans import plan_store
from workers.engines.pocketfarm.plans.plan_store import Plans, StoredPlan


def planned(plans: Plans, **options: str) -> StoredPlan:
    cell = Cell(workload=Workload(network="lenet"), backend=Api.CPU, options=options)
    return plans.plan(cell, make.device("A", make.api(Api.CPU)).facts)


def test_a_plan_that_another_process_removed_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    worker, other = Plans(tmp_path), Plans(tmp_path)
    first = planned(worker)
    monkeypatch.setattr(plan_store, "MAX_PLANS", 1)
    planned(other, fuse="none")
    assert not first.folder.exists()
    again = planned(worker)
    assert again.plan_hash == first.plan_hash and all(file.is_file() for file in again.files.values())
    assert planned(worker) is again


def test_plans_that_are_used_are_not_the_oldest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_store, "MAX_PLANS", 2)
    plans = Plans(tmp_path)
    used, unused = planned(plans), planned(plans, fuse="none")
    assert planned(plans) is used
    planned(plans, fuse="bias")
    assert used.folder.exists() and not unused.folder.exists()
    assert not [path for path in used.folder.parent.iterdir() if path.name.startswith(".")]
