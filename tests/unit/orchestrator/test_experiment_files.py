"""Every experiment file of the repository is valid and comes to jobs on a device that can do everything."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator import spec
from orchestrator.model.device import OURS, Api, EngineFacts, Precision
from orchestrator.model.job import Cell
from orchestrator.nightly import suite
from orchestrator.spec.expansion.expand import expand, size

from . import make

FOLDER = Path(__file__).parents[3] / "experiments"
FILES = sorted([*FOLDER.glob("*.yaml"), *FOLDER.glob("language_models/*.yaml")])
SUITES = sorted((FOLDER / "suites").glob("*.yaml"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_it_expands(path: Path) -> None:
    experiment = spec.load(path)
    able = make.device("A", *(make.api(name, *Precision) for name in Api))
    others = (EngineFacts(name=name, takes=OURS.takes) for name in experiment.matrix.engine or () if name != OURS.name)
    able = able.model_copy(update={"engines": (OURS, *others)})
    experiment = experiment.model_copy(update={"devices": experiment.devices.model_copy(update={"where": "true"})})
    one_device = experiment.model_copy(update={"devices": experiment.devices.model_copy(update={"count": "all"})})
    found = expand(one_device, "e", [able])
    assert len(found.jobs) == size(experiment) > 0
    for axis, values in experiment.matrix:
        ran = {_value(cell, axis) for cell in found.cells}
        assert values is None or set(values) <= ran, f"no device ever runs some {axis} of {values}"


def _value(cell: Cell, axis: str) -> object:
    own = {
        "network": cell.workload.network,
        "backend": cell.backend,
        "precision": cell.precision,
        "engine": cell.engine,
    }
    return own.get(axis, cell.options.get(axis))


@pytest.mark.parametrize("path", SUITES, ids=lambda path: path.stem)
def test_a_suite_names_experiments_that_are_there(path: Path) -> None:
    for experiment in suite.load(path).experiments:
        spec.load(path.parent / experiment)


def test_there_is_one_of_each() -> None:
    assert FILES and SUITES
