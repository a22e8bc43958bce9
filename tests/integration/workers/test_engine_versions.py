"""Two versions of an engine from packages, beside each other on one host: installed, announced, compared, removed.

The other version is the real package again, built as a wheel with a version of its own, as somebody builds a change.
"""

from __future__ import annotations

import random
import re
import sys
import zipfile
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

import pytest

from orchestrator.acts.submission.prepare import prepare
from orchestrator.coordination.artifacts import Artifacts
from orchestrator.model.device import Device
from orchestrator.model.errors import SetupError, SpecError
from orchestrator.model.experiment import Experiment
from orchestrator.model.job import Job
from orchestrator.model.live.lease import Assignment
from orchestrator.model.record import Outcome
from orchestrator.spec.expansion.expand import cells_of, expand
from workers.devices.workstation import CPU_SERIAL
from workers.engines import Engines, Host
from workers.engines.packaged import PackagedEngine

from .conftest import installed
from .test_run import Runner, here

__all__ = ["here"]

NAME = "onnxruntime"


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Engines:
    """The engines of a host whose further versions are its own."""
    installed(tmp_path_factory.mktemp("shared"), NAME)
    state = tmp_path_factory.mktemp("versions")
    (state / "engines").mkdir()
    for kept in Path(sys.prefix, "engines").glob(f"{NAME}-*"):
        (state / "engines" / kept.name).symlink_to(kept)
    return Engines(Host.alone(state))


def wheel_of(package: Distribution, version: str, folder: Path) -> Path:
    """The installed package as a wheel of another version, which it tells itself."""
    own = package.version
    name = package.metadata["Name"]
    made = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(made, "w") as file:
        for path in package.files or ():
            if ".." in path.parts or path.suffix == ".pyc" or path.name == "RECORD":
                continue
            content = Path(str(path.locate())).read_bytes()
            if path.name in ("__init__.py", "METADATA", "build_and_package_info.py"):
                content = content.replace(own.encode(), version.encode())
            place = re.sub(rf"^{name}-[^/]+\.dist-info", f"{name}-{version}.dist-info", path.as_posix())
            file.writestr(place, content)
        file.writestr(f"{name}-{version}.dist-info/RECORD", "")
    return made


def experiment(**given: Any) -> Experiment:
    told = {
        "name": "versions", "workload": {"network": "lenet"}, "sampling": {"samples": 3, "warmup": 1},
        "matrix": {"engine": [NAME], "backend": "cpu", "threads": [1]}, **given,
    }  # fmt: skip
    return Experiment.model_validate(told)


def test_two_versions_are_compared(here: Runner, engines: Engines, tmp_path: Path, seed: int) -> None:
    engine, artifacts = engines.engine(NAME), Artifacts(tmp_path)
    assert isinstance(engine, PackagedEngine)
    site = next(engine.environment.folder.glob("lib/python*/site-packages"))
    (package,) = distributions(name=NAME, path=[str(site)])
    version = f"{engine.version}+drawn{random.Random(seed).randrange(1000)}"
    wheel, member = wheel_of(package, version, tmp_path), here.bench.fleet.member(CPU_SERIAL)
    sides = {"candidate": {"axes": {f"{NAME}.version": version}}}
    made = prepare(experiment(sides=sides), tmp_path, artifacts)

    def missing() -> list[str]:
        given = {"facts": member.facts, "state": {"health": "ready"}, "engines": engines.offered(member.facts)}
        return [each.reason for each in expand(made, "e", [Device.model_validate(given)]).exclusions]

    (reason,) = missing()
    assert f"it has {engine.version}; the version that runs: `farm engines install {NAME}==VERSION`" in reason
    with pytest.raises(SetupError, match="has the version that ships"):
        engine.version_of(wheel_of(package, engine.version, tmp_path))
    with pytest.raises(SetupError, match="is no wheel of"):
        engine.version_of(tmp_path / wheel.name.replace(NAME, "other"))
    assert engine.version_of(wheel) == version
    engine.install(version, wheel)
    assert not missing() and engine.environment.versions == (version,)
    beside = engine.environment.beside(version)
    unlike = {name for name, told in beside.packages.items() if engine.environment.packages.get(name) != told}
    assert unlike == {NAME} and beside.packages.keys() == engine.environment.packages.keys()
    records = {}
    for cell in cells_of(made):
        job = Job(experiment_id="e", cell=cell, block=0, candidates=(CPU_SERIAL,), sampling=made.sampling,
                  conditions=made.conditions, measure=made.measure)  # fmt: skip
        given = {"serial": CPU_SERIAL, "host": "testhost", "attempt": 1, "token": 1, "ttl_s": 15.0}
        record = here(Assignment.model_validate({**given, "job_id": job.job_id, "job": job}))
        assert record.outcome is Outcome.OK, record.reasons
        records[str(cell.options["side"])] = record
    told = {side: record.runs_on.facts.driver for side, record in records.items() if record.runs_on}
    assert told == {"baseline": f"{NAME} {engine.version}", "candidate": f"{NAME} {version}"}
    assert len({record.provenance.program_hash for record in records.values()}) == 2
    assert beside.remove() and missing() and engine.environment.is_ready


def test_a_side_names_a_version_as_an_axis(tmp_path: Path) -> None:
    made = experiment(sides={"candidate": {"engine": {NAME: "1.30.0"}}})
    with pytest.raises(SpecError, match="takes no builds of this engine") as told:
        prepare(made, tmp_path, Artifacts(tmp_path))
    assert "`axes: {onnxruntime.version: VERSION}`" in str(told.value.remedy)
