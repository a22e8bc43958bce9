"""One suite for every API: plans that train, against the NumPy reference in double precision; checkpoints."""

from __future__ import annotations

import hashlib
import json
import signal
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernels.errors import PlanError
from kernels.ir.graph import Graph
from kernels.options import Limits, Options
from kernels.plan.model import Bundle
from kernels.plan.sides import TRANSFER
from kernels.training import TrainingOptions, compile_training, read_checkpoint, trained
from kernels.training.variables import variables_of
from tests.training_reference import train_reference
from tests.unit.kernels.back.graphs import covering
from tests.unit.kernels.back.trainings import NETWORKS, SAMPLES, data_of, sigmoids

from .calls import Calls
from .driver import TIMEOUT_S, Agent
from .plans import Draft, combine, vector
from .test_bad_plans import Json, changed

LIMITS = Limits(cpu_device=True, offset_alignment=4096, max_work_group=64)


def compiled(graph: Graph, api: str, **changes: Any) -> tuple[TrainingOptions, Bundle]:
    if api == "cpu":
        changes.pop("steps", None)  # they are apart, and `joined` is refused
        changes.pop("updates", None)
    training = TrainingOptions(**{"samples": SAMPLES, "epochs": 3, "seed": 9, **changes})
    return training, compile_training(graph, training, Options(api), LIMITS)  # type: ignore[arg-type]


TRAININGS: list[tuple[str, dict[str, Any]]] = [
    ("sigmoids", {"pretrain_epochs": 2, "input_dtype": "f32", "scale": 1 / 255}),
    ("pictures", {"momentum": 0.5, "learning_rate": 0.05, "decay": ((1, 0.5),)}),
    ("sigmoids", {"pretrain_epochs": 1, "momentum": 0.5, "steps": "joined"}),
    ("stacks", {"epochs": 2, "learning_rate": 0.05, "steps": "joined"}),
    ("codes", {"epochs": 2, "learning_rate": 0.01, "loss": "mean_squared_error", "steps": "joined"}),
    ("codes", {"epochs": 2, "learning_rate": 0.01, "loss": "mean_squared_error"}),
    ("shared", {"epochs": 2, "steps": "joined"}),
    ("sigmoids", {"pretrain_epochs": 2, "momentum": 0.5, "steps": "per_node"}),
    ("sigmoids", {"pretrain_epochs": 2, "steps": "per_node", "updates": "host"}),
    ("shared", {"epochs": 2, "steps": "per_node"}),
    ("tangents", {"epochs": 2, "learning_rate": 0.1}),
    ("pictures", {"momentum": 0.5, "learning_rate": 0.05, "decay": ((1, 0.5),), "updates": "host"}),
    ("tangents", {"epochs": 2, "momentum": 0.5, "learning_rate": 0.1, "steps": "joined"}),
]
ON = [*product(["cpu"], TRAININGS), *covering("training", ["opencl", "vulkan"], TRAININGS)]


@pytest.mark.parametrize(("api", "network", "changes"), [(api, *each) for api, each in ON])
def test_a_training_equals_the_reference(agent: Agent, api: str, network: str, changes: dict[str, Any]) -> None:
    """Each on the CPU, and on one interface of GPUs."""
    graph = NETWORKS[network](4)
    data = data_of(graph, 2)
    training, bundle = compiled(graph, api, **changes)
    epochs, weights = train_reference(graph, training, data["data"], data["labels"])
    if training.input_dtype == "f32":
        data["data"] = data["data"].astype(np.float32)
    if training.loss == "mean_squared_error":
        del data["labels"]
    file = agent.folder / "trained"
    run = agent.run(bundle, data, "--checkpoint", file)  # type: ignore[arg-type]
    samples = run.all("sample")
    assert [(each.stage, each.index) for each in samples] == [(each.stage, index) for index, each in enumerate(epochs)]
    assert [each.epoch for each in samples if each.stage == "train"] == list(range(training.epochs))
    np.testing.assert_allclose([each.loss for each in samples], [each.loss for each in epochs], rtol=6e-6)
    assert [each.error for each in samples] == [pytest.approx(each.error, abs=1e-6) for each in epochs]
    told = run.one("checkpoint")
    assert (told.file, told.bytes, told.epochs) == (str(file), file.stat().st_size, len(epochs))
    assert told.sha256 == hashlib.sha256(file.read_bytes()).hexdigest()
    got = trained(graph, read_checkpoint(file, plan=bundle.plan.plan_hash))
    for name in variables_of(graph):
        moved = np.abs(weights[name] - graph.constants[name]).max()
        assert moved > 1e-3, f"{name} was not trained"
        np.testing.assert_allclose(got.constants[name], weights[name], atol=2e-5 * moved, rtol=2e-6, err_msg=name)


@pytest.mark.parametrize("api", ["opencl", "vulkan"])
@pytest.mark.parametrize("network", ["sigmoids", "pictures"])
def test_updates_on_the_host_are_those_of_the_device(agent: Agent, api: str, network: str) -> None:
    """Every epoch's loss, and all that lasts: the same gradients, and steps that differ by an ulp where OpenCL C or a
    compiler joins a product with a sum."""
    graph = NETWORKS[network](4)
    data: Any = data_of(graph, 2)
    changes = {"momentum": 0.5, "learning_rate": 0.05, "pretrain_epochs": 2 * (network == "sigmoids"), "epochs": 3}
    losses, stored = [], []
    for updates in ("device", "host"):
        _, bundle = compiled(graph, api, updates=updates, steps="apart", **changes)
        assert {pool.api for pool in bundle.plan.pools} == ({"", "cpu"} if updates == "host" else {""})
        file = agent.folder / updates
        run = agent.run(bundle, data, "--checkpoint", file)
        losses.append([each.loss for each in run.all("sample")])
        stored.append(read_checkpoint(file, plan=bundle.plan.plan_hash))
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-6)
    assert stored[0].keys() == stored[1].keys()
    for name in stored[0]:
        if name.endswith(":counter"):
            assert stored[0][name] == stored[1][name]
            continue
        of_device, of_host = (np.frombuffer(each[name], np.float32) for each in stored)
        np.testing.assert_allclose(of_host, of_device, rtol=0, atol=2e-6 * np.abs(of_device).max(), err_msg=name)


def test_layers_of_a_training_on_two_sides(agent: Agent) -> None:
    """A pass with the time of each step: the transfers of all weights, gradients, losses and the counter among them."""
    graph = sigmoids()
    data: Any = data_of(graph, 2)
    _, bundle = compiled(graph, "opencl", updates="host", epochs=1)
    run = agent.run(bundle, data, "--layer-passes", 1)
    layers = run.all("layer")
    assert [each.index for each in layers] == list(range(len(bundle.plan.steps)))
    assert all(each.duration_ns > 0 for each in layers)
    moved = [bundle.plan.steps[each.index] for each in layers if each.program == TRANSFER]
    assert len(moved) == 2 * (len(variables_of(graph)) + 1)


@pytest.mark.parametrize("updates", ["device", "host"])
def test_a_killed_training_goes_on_bit_for_bit(agent: Agent, api: str, updates: str) -> None:
    if api == "cpu" and updates == "host":
        pytest.skip("the CPU backend is the host's own")
    graph = sigmoids()
    data: Any = data_of(graph, 2)
    _, bundle = compiled(graph, api, epochs=150, pretrain_epochs=2, momentum=0.5, updates=updates)
    whole, parts = agent.folder / "whole", agent.folder / "parts"
    assert agent.run(bundle, data, "--checkpoint", whole).code == 0
    process = agent.start(bundle, data, "--checkpoint", parts, "--checkpoint-every", 3, pipe_bytes=4096)
    assert process.stdout is not None
    assert any('"checkpoint"' in line and '"epochs":9' in line for line in process.stdout)
    process.kill()
    assert process.wait(TIMEOUT_S) == -signal.SIGKILL
    rest = agent.run(bundle, data, "--resume", parts, "--checkpoint", parts)
    stored = len(rest.all("sample"))
    assert 0 < stored <= 154 - 9
    assert rest.all("sample")[0].epoch == 154 - stored - 4
    assert parts.read_bytes() == whole.read_bytes()


def test_a_training_in_two_halves(agent: Agent) -> None:
    """`--epochs` ends between two epochs, and the next run begins in the stage that was left."""
    graph = sigmoids()
    data: Any = data_of(graph, 2)
    _, bundle = compiled(graph, "cpu", pretrain_epochs=2)
    whole, parts = agent.folder / "whole", agent.folder / "parts"
    agent.run(bundle, data, "--checkpoint", whole)
    first = agent.run(bundle, data, "--checkpoint", parts, "--epochs", 3)
    second = agent.run(bundle, data, "--resume", parts, "--checkpoint", parts)
    stages = [(each.stage, each.epoch) for run in (first, second) for each in run.all("sample")]
    layers = [("pretrain:first", 0), ("pretrain:first", 1), ("pretrain:second", 0), ("pretrain:second", 1)]
    assert stages == [*layers, ("train", 0), ("train", 1), ("train", 2)]
    assert parts.read_bytes() == whole.read_bytes()
    done = agent.run(bundle, data, "--resume", parts, "--checkpoint", parts)
    assert (done.code, done.all("sample"), done.all("checkpoint")) == (0, [], [])


def test_a_checkpoint_that_does_not_fit_is_refused(agent: Agent) -> None:
    graph = sigmoids()
    data: Any = data_of(graph, 2)
    _, bundle = compiled(graph, "cpu")
    file = agent.folder / "checkpoint"
    agent.run(bundle, data, "--checkpoint", file)
    content = file.read_bytes()
    _, other = compiled(graph, "cpu", learning_rate=0.1)
    error = agent.run(other, data, "--resume", file).error
    assert (error.code, f"no checkpoint of plan {other.plan.plan_hash}" in error.message) == ("usage", True)
    for damaged in (content[:-1], content[:300] + b"x" + content[301:], b""):
        file.write_bytes(damaged)
        error = agent.run(bundle, data, "--resume", file).error
        assert error.code == "usage", error
        with pytest.raises(PlanError, match="checkpoint"):
            read_checkpoint(file)


def test_a_label_beyond_the_last_class_is_seen(agent: Agent, api: str) -> None:
    graph = sigmoids()
    data: Any = data_of(graph, 2)
    data["labels"][:] = 3
    _, bundle = compiled(graph, api, epochs=1)
    sample = agent.run(bundle, data).one("sample")
    assert (sample.loss, sample.error) == (None, 1.0)


REFUSED = {
    "warm-up": (("--warmup", 1), "every epoch of it counts"),
    "a stream": (("--inferences", 2), "every epoch of it counts"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_makes_no_sense_is_refused(agent: Agent, name: str) -> None:
    options, said = REFUSED[name]
    error = agent.run(compiled(sigmoids(), "cpu")[1], data_of(sigmoids(), 1), *options).error  # type: ignore[arg-type]
    assert (error.code, said in error.message) == ("usage", True)
    error = agent.run(Draft("cpu", [combine("x", "x", "y")]).bundle(), {"x": vector(1)}, "--epochs", 1).error
    assert (error.code, "for plans that train" in error.message) == ("usage", True)


def _stage(**members: Any) -> Any:
    def change(plan: Json) -> None:
        plan["stages"][0].update(members)

    return change


def _shuffled(plan: Json) -> None:
    """More places in an epoch than samples: the permutation would be walked without end."""
    step = next(step for step in plan["steps"] if step["program"] == "gather_bytes")
    step["arguments"][4]["i32"] = 1000


BAD = {
    "steps of no stage": (_stage(end=3), "plan_invalid", "of no stage"),
    "a stage that begins too late": (_stage(begin=1), "plan_invalid", "$.stages[0]"),
    "too many epochs": (_stage(epochs=10**7), "plan_invalid", "$.stages[0].epochs"),
    "more than a counter holds": (_stage(epochs=10**6, batches=10**6), "limit", "more than a counter holds"),
    "no variable": (_stage(counter="data"), "plan_invalid", "is no variable"),
    "an unknown member": (_stage(depth=2), "plan_invalid", "depth"),
    "an unknown role": (lambda plan: plan["buffers"][0].update(role="loop"), "plan_invalid", "role"),
    "an endless walk": (_shuffled, "plan_invalid", "more places than there are samples"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_a_bad_plan(agent: Agent, name: str) -> None:
    change, code, said = BAD[name]
    bundle, data = compiled(sigmoids(), "cpu")[1], data_of(sigmoids(), 1)
    folder: Path = agent.folder / "plan"
    bundle.write(folder)
    changed(folder, change)
    assert json.loads((folder / "plan.json").read_text())["stages"]
    error = agent.run(folder, data).error  # type: ignore[arg-type]
    assert (error.code, said in error.message) == (code, True), error


ONES = dict.fromkeys(("h", "w", "oh", "ow", "kh", "kw", "sh", "sw", "dh", "dw", "channels"), 1) | {
    "pad_t": 0, "pad_l": 0, "count": 64, "stride": 4, "src_stride": 4,
}  # fmt: skip
WRAPPED = {"h": 1 << 22, "w": 1 << 21}
BEYOND: dict[str, tuple[str, dict[str, int], str]] = {
    "fold": ("fold", {**WRAPPED, "src_stride": 1 << 21}, "2^63"),
    "windows": ("average_pool", {"oh": 1 << 22, "ow": 1 << 21, "stride": 1 << 21}, "2^63"),
    "images": ("average_pool_gradient", {**WRAPPED, "stride": 1 << 21}, "2^63"),
    "taps": ("average_pool_gradient", {"h": 4, "w": 4, "kh": 1 << 28}, "too many taps"),
}


@pytest.mark.parametrize("name", BEYOND)
def test_sizes_beyond_numbers_are_refused(agent: Agent, name: str) -> None:
    operation, sizes, said = BEYOND[name]
    calls = Calls(operation)
    calls.add({"src": np.zeros(64, np.float32)}, {**ONES, **sizes}, (64,))
    error = agent.run(calls.bundle(), {}).error
    assert (error.code, said in error.message) == ("plan_invalid", True), error
