"""Every experiment file of the repository is valid and comes to jobs on a device that can do everything."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator import matrix, spec
from orchestrator.model.device import Api, Precision

from . import make

FILES = sorted((Path(__file__).parents[3] / "experiments").rglob("*.yaml"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_it_expands(path: Path) -> None:
    experiment = spec.load(path)
    able = make.device("A", *(make.api(name, *Precision) for name in Api))
    experiment = experiment.model_copy(update={"devices": experiment.devices.model_copy(update={"where": "true"})})
    one_device = experiment.model_copy(update={"devices": experiment.devices.model_copy(update={"count": "all"})})
    assert len(matrix.expand(one_device, "e", [able]).jobs) == matrix.size(experiment) > 0


def test_there_is_one() -> None:
    assert FILES
