"""Submitting: files checked and kept, ids by content, resumed or rerun."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from onnx import helper
from redis import Redis

from orchestrator import spec
from orchestrator.acts import Submission, submit
from orchestrator.acts.submission.prepare import prepare
from orchestrator.coordination.artifacts import Artifacts
from orchestrator.coordination.inventory import Inventory
from orchestrator.ledger import Ledger
from orchestrator.model.device import Device
from orchestrator.model.errors import ModelFileError, SpecError
from orchestrator.model.experiment import Conditions, Experiment, Matrix, Range, Side, Sides, Workload
from orchestrator.model.record import Outcome
from orchestrator.spec.expansion.expand import cells_of
from orchestrator.system.config import Settings
from tests.unit.kernels.front.onnx_models import save_model
from tests.unit.orchestrator import make
from workers.engines.pocketfarm.plans.plan_store import Plans

from .sites import ME, site


@pytest.fixture
def ledger(farm: Settings) -> Iterator[Ledger]:
    with Ledger(farm.ledger) as opened:
        yield opened


class Desk:
    """The desk where experiments are handed in: one device is announced."""

    def __init__(self, farm: Settings, redis: Redis, ledger: Ledger, base: Path) -> None:
        self.farm, self.ledger, self.base, self.inventory = farm, ledger, base, Inventory(redis)
        self.site = site(farm, ledger, redis)
        self.inventory.announce_device(make.device("A"))

    def submit(self, experiment: Experiment, *, again: bool = False) -> Submission:
        return submit(self.site, ME, experiment, self.base, again=again)

    def finish(self, submission: Submission) -> None:
        for job in submission.expansion.jobs:
            assignment = self.ledger.begin_attempt(job.job_id, "A", "lab", 1.0)
            assert assignment is not None
            self.ledger.keep(make.record(job, attempt=1, token=assignment.token, outcome=Outcome.OK))


@pytest.fixture
def desk(farm: Settings, redis: Redis, ledger: Ledger, tmp_path: Path) -> Desk:
    return Desk(farm, redis, ledger, tmp_path)


def test_unfinished_is_resumed_and_finished_is_rerun(desk: Desk) -> None:
    first = desk.submit(make.many(2, name="night"))
    assert first.experiment_id.startswith("night-") and len(first.experiment_id) == len("night-") + 8
    assert not first.resumed and len(first.expansion.jobs) == 2
    resumed = desk.submit(make.many(2, name="night"))
    assert resumed.resumed and resumed.experiment_id == first.experiment_id
    assert resumed.expansion.jobs == first.expansion.jobs
    assert resumed.expansion.cells == first.expansion.cells
    again = desk.submit(make.many(2, name="night"), again=True)
    assert again.experiment_id == f"{first.experiment_id}-2" and not again.resumed
    desk.finish(first)
    assert desk.submit(make.many(2, name="night")).experiment_id == again.experiment_id
    desk.finish(again)
    third = desk.submit(make.many(2, name="night"))
    assert third.experiment_id == f"{first.experiment_id}-3" and not third.resumed
    assert desk.submit(make.many(3, name="night")).experiment_id[:14] != first.experiment_id[:14]


def test_the_builds_of_a_side_are_kept_by_their_content(desk: Desk, tmp_path: Path) -> None:
    binary = tmp_path / "next" / "arm64-v8a" / "pocketfarm-agent"
    sided = make.experiment(sides=Sides(candidate=Side(agent="next")))
    with pytest.raises(ModelFileError, match=r"sides.candidate.agent: there is no <abi>/pocketfarm-agent in .*next"):
        desk.submit(sided)
    binary.parent.mkdir(parents=True)
    binary.write_bytes(b"one")
    desk.inventory.announce_device(_of_abi("arm64-v8a"))
    first = desk.submit(sided)
    (agent,) = {job.cell.agent["arm64-v8a"] for job in first.expansion.jobs if job.cell.agent}
    assert Artifacts(desk.farm.state).path(agent).read_bytes() == b"one"
    binary.write_bytes(b"two")
    assert desk.submit(sided).experiment_id != first.experiment_id, "another build is another experiment"
    with pytest.raises(SpecError, match=r"sides.candidate.axes.network: no built-in network is called `lenett`"):
        desk.submit(make.experiment(sides=Sides(candidate=Side(axes={"network": "lenett"}))))


def test_the_driver_of_a_side_is_there_at_submission(desk: Desk, tmp_path: Path) -> None:
    sided = make.experiment(sides=Sides(candidate=Side(driver="next.icd")))
    with pytest.raises(ModelFileError, match=r"sides.candidate.driver: there is no file .*next\.icd"):
        desk.submit(sided)
    ids = set()
    for text in ("libone.so", "libtwo.so"):
        (tmp_path / "next.icd").write_text(text)
        submission = desk.submit(sided)
        assert {cell.driver for cell in submission.expansion.cells} == {"", str(tmp_path / "next.icd")}
        ids.add(submission.experiment_id)
    assert len(ids) == 2, "another driver behind the same path is another experiment"


def _of_abi(abi: str) -> Device:
    device = make.device("A")
    return device.model_copy(update={"facts": device.facts.model_copy(update={"abi": abi})})


def model(path: Path) -> Path:
    """A small ONNX model."""
    from onnx import TensorProto, helper, save

    tensor = helper.make_tensor_value_info
    node = helper.make_node("Relu", ["x"], ["y"])
    shape = ["n", 4, 2, 2]
    graph = helper.make_graph(
        [node], "relu", [tensor("x", TensorProto.FLOAT, shape)], [tensor("y", TensorProto.FLOAT, shape)]
    )
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
    return path


def test_files_are_kept_by_content(desk: Desk, tmp_path: Path) -> None:
    model(tmp_path / "m.onnx")
    np.save(tmp_path / "x.npy", np.zeros((1, 4, 2, 2), np.float32))
    experiment = make.experiment(workload=Workload(onnx="m.onnx", input="x.npy"))
    submission = desk.submit(experiment)
    workload = submission.expansion.jobs[0].cell.workload
    kept = Artifacts(desk.farm.state)
    assert kept.path(workload.onnx_sha256 or "").read_bytes() == (tmp_path / "m.onnx").read_bytes()
    assert kept.path(workload.input_sha256 or "").read_bytes() == (tmp_path / "x.npy").read_bytes()
    np.save(tmp_path / "x.npy", np.ones((1, 4, 2, 2), np.float32))
    assert desk.submit(experiment).experiment_id != submission.experiment_id


def test_each_of_several_workloads_has_its_own_files(desk: Desk, tmp_path: Path) -> None:
    model(tmp_path / "m.onnx")
    np.save(tmp_path / "x.npy", np.zeros((1, 4, 2, 2), np.float32))
    (tmp_path / "m.mnn").write_bytes(b"m")
    text = """
        {name: several, workload: [{network: lenet}, {onnx: m.onnx, input: x.npy}], devices: {count: all},
         matrix: {engine: [pocketfarm, mnn], backend: opencl}, engine: {models: {mnn: {m: m.mnn}}}}"""
    experiment = spec.parse(text, "several.yaml")
    stored = prepare(experiment, tmp_path, Artifacts(desk.farm.state))
    assert Experiment.model_validate_json(stored.model_dump_json()) == stored
    found = {(cell.workload.label, cell.engine): cell for cell in cells_of(stored)}
    assert list(found) == [(name, engine) for name in ("lenet", "m") for engine in ("pocketfarm", "mnn")]
    kept, file = Artifacts(desk.farm.state), found["m", "mnn"]
    assert [kept.path(sha256).read_bytes() for sha256 in file.model_files.values()] == [b"m"]
    assert all(not cell.model_files for key, cell in found.items() if key != ("m", "mnn"))
    assert kept.path(file.workload.input_sha256 or "").read_bytes() == (tmp_path / "x.npy").read_bytes()
    (alone,) = cells_of(make.experiment(workload=Workload(network="lenet")))
    assert alone.cell_id == found["lenet", "pocketfarm"].cell_id, "it is the cell of an experiment of its own"
    (tmp_path / "m.onnx").write_bytes(b"no model")
    with pytest.raises(ModelFileError, match=r"m\.onnx"):
        prepare(experiment, tmp_path, Artifacts(desk.farm.state))


def test_a_batch_that_a_model_fixes_is_refused_at_once(desk: Desk, tmp_path: Path) -> None:
    model(tmp_path / "m.onnx")
    save_model(tmp_path / "fixed.onnx", [helper.make_node("Relu", ["x"], ["y"])], {"x": (1, 4)}, ["y"])
    stated = make.experiment(workload=Workload(onnx="fixed.onnx"), matrix=Matrix(batch=(1, 3)))
    with pytest.raises(ModelFileError, match=r"fixed\.onnx: a batch of 3 was asked, .*'x' has 1 \(the file fixes it\)"):
        desk.submit(stated)
    assert desk.ledger.experiments() == []
    np.save(tmp_path / "x.npy", np.ones((2, 4, 2, 2), np.float32))
    given = make.experiment(workload=Workload(onnx="m.onnx", input="x.npy"), matrix=Matrix(batch=(2, 3)))
    with pytest.raises(ModelFileError, match=r"a batch of 3 was asked, .*give inputs or sizes of that batch, or none"):
        desk.submit(given)
    free = desk.submit(make.experiment(workload=Workload(onnx="m.onnx"), matrix=Matrix(batch=(1, 3))))
    assert [job.cell.batch for job in free.expansion.jobs if job.block == 0] == [1, 3]


def test_sizes_that_a_file_leaves_open_are_those_of_the_input_or_asked(desk: Desk, tmp_path: Path) -> None:
    save_model(tmp_path / "open.onnx", [helper.make_node("Relu", ["x"], ["y"])], {"x": ("n", "steps")}, ["y"])
    with pytest.raises(ModelFileError, match=r"'x' is open in dimension 1 \('steps'\).*sizes: \{steps: N\}"):
        desk.submit(make.experiment(workload=Workload(onnx="open.onnx")))
    (asked, *_) = desk.submit(make.experiment(workload=Workload(onnx="open.onnx", sizes={"steps": 5}))).expansion.jobs
    assert asked.cell.workload.label == "open steps=5"
    np.save(tmp_path / "x.npy", np.ones((2, 7), np.float32))
    (given, *_) = desk.submit(make.experiment(workload=Workload(onnx="open.onnx", input="x.npy"))).expansion.jobs
    (example, *_) = desk.submit(
        make.experiment(workload=Workload.model_validate({"onnx": "open.onnx", "dataset": {"inputs": "x.npy"}}))
    ).expansion.jobs
    plans = Plans(desk.farm.state)
    shapes = [plans.models.graph(job.cell.workload, job.cell.batch).shapes["x"] for job in (asked, given, example)]
    assert shapes == [(1, 5), (2, 7), (1, 7)]


def test_a_choices_file_is_part_of_what_runs(desk: Desk, tmp_path: Path) -> None:
    choices = {
        "origin": "here",
        "layers": [{"layer": "conv1", "best": {"granularity": 4}, "worst": {"granularity": 1}}],
    }
    file = tmp_path / "c.json"
    file.write_text(json.dumps(choices))
    asked = make.experiment(
        workload=Workload(network="lenet", choices="c.json"), matrix=Matrix(choices=("best", "worst"))
    )
    submission = desk.submit(asked)
    cell = submission.expansion.jobs[0].cell
    assert Artifacts(desk.farm.state).path(cell.workload.choices_sha256 or "").read_bytes() == file.read_bytes()
    assert {each.options["choices"] for each in submission.expansion.cells} == {"best", "worst"}
    file.write_text(json.dumps(choices).replace(": 4", ": 8"))
    assert desk.submit(asked).experiment_id != submission.experiment_id
    file.write_text(json.dumps(choices).replace("granularity", "precision"))
    with pytest.raises(ModelFileError, match=r"c\.json: layers.0.best: .*a layer has no `precision` of its own"):
        desk.submit(asked)
    with pytest.raises(ValueError, match=r"`matrix.choices` needs a file"):
        make.experiment(matrix=Matrix(choices="best"))


def test_files_that_cannot_be_used_are_refused_at_once(desk: Desk, tmp_path: Path) -> None:
    good = model(tmp_path / "m.onnx").read_bytes()
    with pytest.raises(ModelFileError, match="there is no file"):
        desk.submit(make.experiment(workload=Workload(onnx="none.onnx")))
    (tmp_path / "cut.onnx").write_bytes(good[: len(good) // 2])
    with pytest.raises(ModelFileError, match=r"cut\.onnx"):
        desk.submit(make.experiment(workload=Workload(onnx="cut.onnx")))
    (tmp_path / "x.npy").write_bytes(b"no array")
    with pytest.raises(ModelFileError, match=r"x\.npy"):
        desk.submit(make.experiment(workload=Workload(onnx="m.onnx", input="x.npy")))
    np.save(tmp_path / "wrong.npy", np.zeros((3, 3), np.float32))
    with pytest.raises(ModelFileError, match=r"wrong\.npy: input 'x' is \(3, 3\); the model takes \(n, 4, 2, 2\)"):
        desk.submit(make.experiment(workload=Workload(onnx="m.onnx", input="wrong.npy")))
    assert desk.ledger.experiments() == []


def examples(tmp_path: Path, count: int, labels: int | None = None, **fields: object) -> Workload:
    """A workload with a set for the small model."""
    np.save(tmp_path / "set.npy", np.zeros((count, 4, 2, 2), np.uint8))
    (tmp_path / "labels.txt").write_text("3\n" * (count if labels is None else labels))
    dataset = {"inputs": "set.npy", "labels": "labels.txt", **fields}
    return Workload.model_validate({"onnx": model(tmp_path / "m.onnx").name, "dataset": dataset})


def test_a_set_comes_to_as_many_blocks_as_it_has_shards(desk: Desk, tmp_path: Path) -> None:
    submission = desk.submit(make.experiment(workload=examples(tmp_path, 10, shard=4)))
    assert [job.examples for job in submission.expansion.jobs] == [range(4), range(4, 8), range(8, 10)]
    (row,) = desk.ledger.experiments()
    dataset = row.experiment.workload.dataset
    assert dataset is not None and (row.experiment.sampling.blocks, dataset.size) == (3, 10)
    kept = Artifacts(desk.farm.state)
    assert kept.path(dataset.labels_sha256 or "").read_text() == "3\n" * 10
    assert desk.submit(make.experiment(workload=examples(tmp_path, 10, shard=4))).resumed
    assert not desk.submit(make.experiment(workload=examples(tmp_path, 11, shard=4))).resumed


def test_sets_that_cannot_be_used_are_refused_at_once(desk: Desk, tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"labels\.txt has 9 labels, set\.npy 10 examples"):
        desk.submit(make.experiment(workload=examples(tmp_path, 10, labels=9)))
    with pytest.raises(SpecError, match=r"1,001 examples in shards of 1 are 1,001 blocks(.|\n)*`shard: 2` or more"):
        desk.submit(make.experiment(workload=examples(tmp_path, 1001, shard=1)))
    with pytest.raises(ModelFileError, match=r"set\.npy: 9 examples are no multiple of the batch, 2"):
        desk.submit(make.experiment(workload=examples(tmp_path, 9, shard=4), matrix=Matrix(batch=(2,))))
    with pytest.raises(ModelFileError, match="mean: 3 numbers; give one, or one of each of the 4 channels"):
        desk.submit(make.experiment(workload=examples(tmp_path, 8, mean=[1, 2, 3])))
    with pytest.raises(SpecError, match="the last shard has 1 of 9 examples, too few for a pipeline"):
        desk.submit(make.experiment(workload=examples(tmp_path, 9, shard=4), matrix=Matrix(pipeline=("balanced",))))
    wrong = examples(tmp_path, 8)
    np.save(tmp_path / "set.npy", np.zeros((8, 4, 2, 3), np.uint8))
    with pytest.raises(ModelFileError, match=r"set\.npy: 8 x 4 x 2 x 3; m takes examples x 4 x 2 x 2"):
        desk.submit(make.experiment(workload=wrong))
    fine = examples(tmp_path, 2)
    (tmp_path / "labels.txt").write_text("3\nseven\n")
    with pytest.raises(ModelFileError, match=r"labels\.txt:2: `seven` does not end in a class number"):
        desk.submit(make.experiment(workload=fine))
    assert desk.ledger.experiments() == []


def test_sets_for_networks_without_a_prediction_an_example_are_refused_at_once(desk: Desk, tmp_path: Path) -> None:
    def asked(nodes: list[str], shape: tuple[int, ...], batch: int | None = None) -> Experiment:
        made = [helper.make_node(each, ["x"], [f"y{number}"]) for number, each in enumerate(nodes)]
        save_model(tmp_path / "own.onnx", made, {"x": shape}, [f"y{number}" for number in range(len(nodes))])
        np.save(tmp_path / "own.npy", np.ones((8, *shape[1:]), np.float32))
        workload = Workload.model_validate({"onnx": "own.onnx", "dataset": {"inputs": "own.npy", "shard": 8}})
        return make.experiment(workload=workload, matrix=Matrix(batch=batch and (batch,)))

    with pytest.raises(ModelFileError, match=r"own takes 4 examples in one inference(.|\n)*batch: \[4\]"):
        desk.submit(asked(["Relu"], (4, 3)))
    with pytest.raises(ModelFileError, match=r"own has 2 outputs \(y0, y1\); predictions are read from one"):
        desk.submit(asked(["Relu", "Tanh"], (1, 3)))
    with pytest.raises(ModelFileError, match="own gives 1 number for 1 example"):
        desk.submit(asked(["Relu"], (1, 1)))
    assert desk.ledger.experiments() == []
    (job,) = desk.submit(asked(["Relu"], (4, 3), batch=4)).expansion.jobs
    assert job.inferences == 2


def test_an_input_goes_with_the_sizes_of_a_network(desk: Desk, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((1, 100), np.float32))
    sizes = {"inputs": 100, "hidden": (8,), "classes": 5}
    desk.submit(make.experiment(workload=Workload(network="classifier_784", parameters=sizes, input="x.npy")))
    with pytest.raises(ModelFileError, match=r"expected \(1, 784\)"):
        desk.submit(make.experiment(workload=Workload(network="classifier_784", input="x.npy")))


def test_what_cannot_run_is_refused(desk: Desk) -> None:
    with pytest.raises(SpecError, match="did you mean `squeezenet_v1_0`"):
        desk.submit(make.experiment(workload=Workload(network="squeezenet_v10")))
    with pytest.raises(SpecError, match="no built-in network is called `b`"):
        desk.submit(make.experiment(matrix=Matrix(network=("squeezenet_v1_0", "b"))))
    with pytest.raises(SpecError, match="did you mean `direct`"):
        desk.submit(make.experiment(matrix=Matrix(algorithm=("auto", "direkt"))))
    with pytest.raises(SpecError, match=r"nothing can run(.|\n)*the device has no vulkan"):
        desk.submit(make.experiment(matrix=Matrix(backend=("vulkan",))))


def test_what_no_phone_can_meet_is_refused_also_without_a_file(desk: Desk) -> None:
    never = Conditions(battery_percent=Range(min=80, max=101), battery_temp_min=50.0)
    with pytest.raises(SpecError, match=r"conditions.battery_percent.max: a charge is 0 to 100 %, got 101"):
        desk.submit(make.experiment(conditions=never))
    with pytest.raises(SpecError, match=r"50 C is above battery_temp_max, 40 C"):
        desk.submit(make.experiment(conditions=Conditions(battery_temp_min=50.0)))


def test_artifacts_are_verified(tmp_path: Path) -> None:
    kept = Artifacts(tmp_path / "state")
    (tmp_path / "f").write_bytes(b"content")
    sha256 = kept.put(tmp_path / "f")
    assert kept.put(tmp_path / "f") == sha256
    assert [p.name for p in (tmp_path / "state" / "artifacts").rglob("*") if p.is_file()] == [sha256]
    kept.path(sha256).write_bytes(b"damaged")
    with pytest.raises(ModelFileError, match="damaged"):
        kept.path(sha256)
    with pytest.raises(ModelFileError, match="is not in"):
        kept.path("0" * 64)
    with pytest.raises(ModelFileError, match="not a SHA-256"):
        kept.path("../../etc/passwd")
    with pytest.raises(ModelFileError, match="cannot be kept"):
        kept.put(tmp_path / "none")
