"""Two sides of an experiment: every cell on both, next to each other, and alike but for the side."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from pydantic import ValidationError

from orchestrator.acts.submission.prepare import prepare
from orchestrator.analysis.comparison import alike, compare, sides_of
from orchestrator.coordination.artifacts import Artifacts
from orchestrator.model.base import content_hash
from orchestrator.model.device import Api, Precision, Source
from orchestrator.model.errors import ModelFileError, SpecError
from orchestrator.model.experiment import Experiment, Matrix, Sampling, Side, Sides, Workload
from orchestrator.spec.expansion.expand import expand, size
from tests.unit.comparison import made

from . import make

OTHER = {"arm64-v8a": "b" * 64}


def sided(candidate: Side, baseline: Side | None = None, **fields: object) -> Experiment:
    return make.experiment(sides=Sides(baseline=baseline or Side(), candidate=candidate), **fields)


@pytest.mark.parametrize("order", ["interleaved", "abba"])
def test_both_sides_of_a_cell_follow_each_other_in_every_round(order: str) -> None:
    matrix = Matrix(backend=(Api.OPENCL, Api.CPU))
    experiment = sided(Side(), matrix=matrix, sampling=Sampling(blocks=6, order=order))
    jobs = expand(experiment, "e-1", [make.device("A", make.api(), make.api(Api.CPU))]).jobs
    assert len(jobs) == size(experiment) == 2 * 2 * 6
    pairs = [jobs[i : i + 2] for i in range(0, len(jobs), 2)]
    for first, second in pairs:
        assert (first.block, first.cell.backend) == (second.block, second.cell.backend)
        assert {first.cell.options["side"], second.cell.options["side"]} == {"baseline", "candidate"}
    turned = {first.cell.options["side"] for first, _ in pairs}
    assert turned == ({"baseline", "candidate"} if order == "abba" else {"baseline"})
    assert all(a.block <= b.block for a, b in pairwise(jobs))


def test_both_sides_of_a_cell_take_over_the_same_heat_within_four_rounds() -> None:
    """A block takes over what its neighbour's cell left: as often the same cell on either side."""
    backends = (Api.OPENCL, Api.VULKAN, Api.CPU)
    experiment = sided(Side(), matrix=Matrix(backend=backends), sampling=Sampling(blocks=8, order="abba"))
    devices = [make.device("A", *map(make.api, backends)), make.device("B", make.api(Api.CPU), make.api(Api.VULKAN))]
    jobs = expand(experiment, "e-1", devices).jobs
    for serial in "AB":
        before: dict[tuple[object, object], Counter[object]] = defaultdict(Counter)
        for first, second in pairwise(job for job in jobs if job.candidates == (serial,)):
            before[second.cell.backend, second.cell.options["side"]][first.cell.backend] += second.block >= 4
        assert all(before[backend, "baseline"] == before[backend, "candidate"] for backend, _ in before)


def test_a_cell_that_has_one_side_on_a_device_takes_no_other_cell_for_its_other_side() -> None:
    halves = Matrix(backend=(Api.OPENCL, Api.VULKAN, Api.CPU))
    device = make.device("A", make.api(Api.OPENCL, *Precision), make.api(Api.VULKAN), make.api(Api.CPU, *Precision))
    side = Side(axes={"precision": "fp16"})
    jobs = expand(sided(side, matrix=halves, sampling=Sampling(blocks=4, order="abba")), "e-1", [device]).jobs
    turns = defaultdict(list)
    for job in jobs:
        turns[job.cell.backend, job.block].append(job.cell.options["side"])
    assert [turns[Api.CPU, number][0][0] for number in range(4)] == ["b", "c", "c", "b"]
    assert turns[Api.VULKAN, 2] == ["baseline"]


def test_a_side_has_its_own_axes_network_and_agent() -> None:
    candidate = Side(axes={"precision": "fp16", "network": "lenet", "tuned": False}, agent_sha256=OTHER)
    expansion = expand(sided(candidate), "e-1", [make.device("A", make.api(Api.OPENCL, *Precision))])
    baseline, other = expansion.cells
    assert (baseline.precision, baseline.agent) == (Precision.FP32, {})
    assert "tuned" not in baseline.options and baseline.workload.network == "squeezenet_v1_0"
    assert (other.precision, other.workload.network, other.agent) == (Precision.FP16, "lenet", OTHER)
    assert other.options == {"tuned": False, "side": "candidate"}
    (lacking,) = expansion.exclusions
    assert "the side has no agent for abi (unknown) (it has arm64-v8a)" in lacking.reason


def test_a_side_has_a_driver_of_its_backend_on_machines_of_the_farm() -> None:
    opencl = Matrix(backend=(Api.OPENCL,))
    drivers = [Side(driver="/opt/next/pocl.icd", driver_sha256=letter * 64) for letter in "ab"]
    a, b = make.device("A"), make.device("B")
    here = a.facts.model_copy(update={"kind": "workstation", "source": Source.WORKSTATION})
    expansion = expand(sided(drivers[0], drivers[1], matrix=opencl), "e-1", [a.model_copy(update={"facts": here}), b])
    assert len({cell.cell_id for cell in expansion.cells}) == 2, "two drivers are two cells, whatever their path"
    assert {cell.driver for cell in expansion.cells} == {"/opt/next/pocl.icd"}
    assert {job.candidates for job in expansion.jobs} == {("A",)}
    assert {(each.serial, "cannot choose a phone's driver" in each.reason) for each in expansion.exclusions} == {
        ("B", True)
    }
    for wrong in (Matrix(backend=(Api.OPENCL, Api.CPU)), Matrix(backend=(Api.VULKAN,))):
        with pytest.raises(ValidationError, match=r"pocl\.icd is no driver of all backends that it runs on"):
            sided(drivers[0], matrix=wrong)


def test_a_side_has_another_build_of_an_engine(tmp_path: Path, seed: int) -> None:
    """A command's build is its folder by content, whatever that is called; our own engine's is the agent."""
    random, artifacts = Random(seed), Artifacts(tmp_path / "state")
    texts = {name: f"#!/bin/sh\necho {name} {random.random()}\n" for name in ("now", "next", "same")}
    texts["same"] = texts["now"]
    for name, text in texts.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "bench").write_text(text)
    command = Workload(command="./bench", files="now")
    for name in ("next", "same"):
        asked = sided(Side.model_validate({"engine": {"command": name}}), workload=command)
        kept = prepare(asked, tmp_path, artifacts)
        baseline, candidate = expand(kept, "e-1", [make.device("A")]).cells
        shas = [each.workload.files_sha256 for each in (baseline, candidate)]
        assert [artifacts.path(each["bench"]).read_text() for each in shas] == [texts["now"], texts[name]]
        assert (baseline.workload == candidate.workload) == (name == "same")
        assert {each.workload.label for each in (baseline, candidate)} == {command.label}
        assert Experiment.model_validate(kept.model_dump()).sides == kept.sides
    ours = Side.model_validate({"engine": {"pocketfarm": "builds/next"}})
    assert ours == Side(agent="builds/next") and not ours.engine
    with pytest.raises(ValidationError, match="give either `agent` or"):
        Side.model_validate({"engine": {"pocketfarm": "a"}, "agent": "b"})
    network, none = Workload(network="lenet"), tmp_path / "none"
    none.mkdir()
    for workload, engine, told in (
        (command, {"ncnn": "next"}, "candidate.engine.ncnn: the farm takes no builds of this engine"),
        (network, {"command": "next"}, "candidate.engine.command: the workload is no command"),
        (command, {"command": "none"}, "candidate.engine.command: 0 files in"),
    ):
        with pytest.raises((SpecError, ModelFileError), match=told):
            prepare(sided(Side.model_validate({"engine": engine}), workload=workload), tmp_path, artifacts)


def test_what_has_no_sides_keeps_its_identity() -> None:
    plain = make.experiment()
    assert "sides" not in plain.model_dump()
    assert not {"agent", "driver", "driver_sha256"} & make.job().cell.model_dump().keys()
    assert content_hash(plain) == content_hash(Experiment.model_validate(plain.model_dump()))


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        (
            {"matrix": Matrix(precision=(Precision.FP32, Precision.FP16)), "set": "precision"},
            "several values: give one",
        ),
        ({"workload": Workload(onnx="m.onnx"), "set": "network"}, "names a file: give `onnx` instead"),
    ],
)
def test_sides_that_do_not_fit_the_matrix_are_refused(fields: dict[str, object], wanted: str) -> None:
    values = {"precision": "fp16", "network": "lenet"}
    axis = str(fields.pop("set"))
    with pytest.raises(ValidationError, match=wanted):
        sided(Side(axes={axis: values[axis]}), **fields)


def test_cells_that_differ_by_what_the_side_sets_are_compared() -> None:
    experiment = sided(Side(axes={"precision": "fp16", "tuned": False}, onnx="next.onnx"))
    a = made.measured([10.0 + i % 3 / 10 for i in range(8)], options={"side": "baseline"})
    b = made.measured([11.0 + i % 3 / 10 for i in range(8)], options={"side": "candidate", "tuned": False},
                      precision="fp16", network="next", late=20.0)  # fmt: skip
    unlike = compare(*sides_of([*a, *b], "side", "baseline", "candidate"))
    assert {row.verdict for row in unlike} == {"missing"}
    (row,) = compare(*sides_of(alike([*a, *b], experiment), "side", "baseline", "candidate"))
    assert (row.verdict, row.method, row.worse) == ("different", "paired", True)
    assert (row.precision, row.network, row.options["tuned"]) == ("fp32|fp16", "squeezenet_v1_0|next", "true|false")
