"""Training: gradients against slopes and torch, runs against the NumPy reference, the order of samples, refusals."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels.errors import OptionError, PlanError, UnsupportedNode
from kernels.frontend.load import load_workload
from kernels.frontend.networks.builder import NetworkBuilder
from kernels.frontend.networks.export import to_onnx
from kernels.ir.graph import Graph
from kernels.lower.cpu.agent_operations import CPU_OPERATIONS
from kernels.options import Backend, Limits, Options
from kernels.plan.model import Dispatch, Plan, Stage, Transfer
from kernels.plan.sides import TRANSFER, segments
from kernels.plan.validate import validate
from kernels.reference import evaluate
from kernels.training import TrainingOptions, compile_training
from kernels.training.gpu_kernels import KERNELS
from kernels.training.options import Loss
from kernels.training.shuffle import half_bits, order_of
from kernels.training.stages import TrainingStage, stages_of
from kernels.training.variables import Variable
from tests.training_reference import gradients_of

from .trainings import NETWORKS, SAMPLES, pictures, sigmoids

LIMITS = Limits(cpu_device=True)


@st.composite
def networks(draw: st.DrawFn) -> Graph:
    """One to three layers of each kind at random sizes."""
    net = NetworkBuilder(
        "drawn", draw(st.integers(0, 99)), (4, draw(st.integers(1, 3)), *draw(st.tuples(*[st.integers(5, 9)] * 2)))
    )
    x = net.input
    for index in range(draw(st.integers(0, 2))):
        x = net.conv(
            f"conv{index}", x, draw(st.integers(1, 5)), draw(st.integers(1, 3)), stride=draw(st.integers(1, 2)), pad=1
        )
        x = draw(st.sampled_from([net.relu, net.sigmoid, lambda x: x]))(x)
        pool = draw(st.sampled_from([net.max_pool, net.average_pool, None]))
        if pool is not None and min(net.graph.shapes[x][2:]) >= 3:
            x = pool(f"pool{index}", x, draw(st.integers(2, 3)), ceil=draw(st.booleans()))
    x = net.flatten("flat", x)
    for index in range(draw(st.integers(0, 2))):
        x = net.sigmoid(net.dense(f"dense{index}", x, draw(st.integers(1, 9)), gain=1.0))
    return net.finish(net.softmax("prob", net.dense("last", x, 3, gain=1.0)))


def assert_slopes(stage: TrainingStage, weights: dict[str, Any], x: Any, labels: Any, rng: np.random.Generator) -> None:
    """The reference, against differences in double precision along a random direction of each weight."""
    found = gradients_of(stage, weights, x, labels)[2]
    for name in stage.trained:
        direction, step = rng.standard_normal(weights[name].shape), 1e-6
        plus, minus = ({**weights, name: weights[name] + sign * step * direction} for sign in (1, -1))
        slope = float((gradients_of(stage, plus, x, labels)[0] - gradients_of(stage, minus, x, labels)[0]).mean()) / 2
        assert abs(slope / step - float((found[name] * direction).sum())) <= 1e-6 * (1 + abs(slope / step)), name


def in_double(stage: TrainingStage) -> dict[str, Any]:
    return {name: array.astype(np.float64) for name, array in stage.graph.constants.items()}


@settings(max_examples=15, deadline=None)
@given(networks(), st.integers(0, 1000))
def test_gradients_are_slopes(graph: Graph, seed: int) -> None:
    rng = np.random.default_rng(seed)
    (stage,) = stages_of(graph, TrainingOptions(samples=4, epochs=1))
    weights, x = in_double(stage), rng.standard_normal(graph.shapes["data"])
    labels = rng.integers(0, 3, 4)
    assert_slopes(stage, weights, x, labels, rng)


def test_gradients_of_tanh_are_slopes() -> None:
    rng = np.random.default_rng(3)
    graph = NETWORKS["tangents"](3)
    (stage,) = stages_of(graph, TrainingOptions(samples=4, epochs=1))
    weights, x, labels = in_double(stage), rng.standard_normal(graph.shapes["data"]), np.arange(4) % 3
    assert_slopes(stage, weights, x, labels, rng)


def test_a_network_with_tanh_is_an_onnx_file_and_back(tmp_path: Path) -> None:
    """A trained one leaves the farm so, and the next training reads it so."""
    graph = NETWORKS["tangents"](3)
    to_onnx(graph, tmp_path / "trained.onnx", any_batch=True)
    read = load_workload(network=None, onnx=tmp_path / "trained.onnx", seed=None, batch=4)
    x = np.random.default_rng(1).standard_normal(graph.shapes["data"]).astype(np.float32)
    (wanted,), (got,) = (evaluate(each, {each.inputs[0]: x}).values() for each in (graph, read))
    np.testing.assert_allclose(got, wanted, rtol=1e-5)
    assert compile_training(read, TrainingOptions(SAMPLES, 1), Options("cpu"), LIMITS).plan.stages


@pytest.mark.parametrize("stage_index", [0, 1])
def test_gradients_of_tied_weights_are_slopes(stage_index: int) -> None:
    """The weight is used twice, the second time transposed; the target is no part of the gradient."""
    rng = np.random.default_rng(stage_index)
    graph = sigmoids()
    stage = stages_of(graph, TrainingOptions(samples=8, epochs=1, pretrain_epochs=1))[stage_index]
    weights, x = in_double(stage), rng.random(graph.shapes["data"])
    assert_slopes(stage, weights, x, None, rng)


@pytest.mark.parametrize("network", NETWORKS)
def test_gradients_equal_those_of_torch(network: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    graph = NETWORKS[network](3)
    loss: Loss = "mean_squared_error" if network == "codes" else "cross_entropy"
    (stage,) = stages_of(graph, TrainingOptions(samples=8, epochs=1, loss=loss))
    weights, x = in_double(stage), np.random.default_rng(1).standard_normal(graph.shapes["data"])
    labels = np.arange(len(x)) % 3
    losses, _, found = gradients_of(stage, weights, x, labels)
    variables = {name: torch.tensor(weights[name], requires_grad=True) for name in stage.trained}
    value = {"data": torch.tensor(x)}
    for node in stage.graph.nodes:
        value[node.output] = _in_torch(torch, node, [value.get(name, variables.get(name)) for name in node.inputs])
    if stage.target:
        found_by_torch = (value[stage.output] - value["data"]).square().sum() / (2 * len(x))
    else:
        found_by_torch = torch.nn.functional.cross_entropy(value[stage.output], torch.tensor(labels))
    found_by_torch.backward()
    assert found_by_torch.item() == pytest.approx(losses.mean(), rel=1e-12)
    for name, variable in variables.items():
        np.testing.assert_allclose(found[name], variable.grad.numpy(), rtol=1e-9, atol=1e-12, err_msg=name)


def _in_torch(torch: Any, node: Any, inputs: list[Any]) -> Any:
    f, a = torch.nn.functional, node.attributes
    if node.op == "dense":
        out = inputs[0] @ inputs[1] + inputs[2]
    elif node.op == "conv":
        out = f.conv2d(inputs[0], inputs[1], inputs[2] if len(inputs) > 2 else None, a["strides"], a["pads"][:2])
    elif node.op == "max_pool":
        out = f.max_pool2d(inputs[0], a["kernel"], a["strides"], ceil_mode=True)
    elif node.op == "average_pool":
        out = f.avg_pool2d(inputs[0], a["kernel"], a["strides"], ceil_mode=True, count_include_pad=False)
    else:
        name = a["expression"][0] if node.op == "map" else node.op
        out = inputs[0].flatten(1) if node.op == "reshape" else getattr(torch, name)(inputs[0])
    activation = a.get("activation")
    return getattr(torch, activation[0])(out) if activation else out


def test_a_product_ends_in_what_follows_it() -> None:
    """This is the default on a GPU with memory of its own and room for a team of work-items."""
    training, desktop = TrainingOptions(SAMPLES, 1), Limits(unified_memory=False, max_work_group=1024)
    graph = sigmoids()
    joined = compile_training(graph, training, Options("opencl"), desktop).plan
    apart = compile_training(graph, training, Options("opencl"), LIMITS).plan
    assert len(joined.steps) <= len(apart.steps) * 0.6
    assert not {program.kernel for program in joined.programs} & {"transpose", "transpose_tiled", "accumulate"}
    small = replace(desktop, max_work_group=16)
    assert len(compile_training(graph, training, Options("opencl"), small).plan.steps) > len(joined.steps)
    asked = replace(training, steps="joined")
    shared = replace(desktop, unified_memory=True)
    assert len(compile_training(graph, asked, Options("opencl"), shared).plan.steps) == len(joined.steps)
    for options, limits, complaint in (
        (Options("cpu"), desktop, "on OpenCL and Vulkan alone"),
        (Options("vulkan"), small, "no team of work-items"),
    ):
        with pytest.raises(OptionError, match=complaint):
            compile_training(graph, asked, options, limits)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 3000), st.integers(-(2**31), 2**31 - 1), st.integers(0, 10**6))
def test_an_epoch_takes_every_sample_once(samples: int, seed: int, epoch: int) -> None:
    order = order_of(samples, seed, epoch)
    assert sorted(order.tolist()) == list(range(samples))
    assert samples <= 4 ** half_bits(samples) < max(16 * samples, 17)


def test_epochs_take_the_samples_in_different_orders() -> None:
    """Hardly more places in common than chance has: one, whatever their number."""
    orders = [order_of(5000, seed, epoch) for seed in (0, 1) for epoch in range(20)]
    common = [int((one == other).sum()) for index, one in enumerate(orders) for other in orders[:index]]
    assert 0.8 < np.mean(common) < 1.2
    assert max(common) < 10
    neighbours = [np.corrcoef(order[:-1], order[1:])[0, 1] for order in orders]
    assert np.abs(neighbours).max() < 0.07


@settings(max_examples=40, deadline=None)
@given(
    st.one_of(
        st.tuples(*[st.integers(1, 9)] * 4).map(lambda shape: Variable("w", shape)),
        st.tuples(*[st.integers(1, 9)] * 2).map(lambda shape: Variable("w", shape)),
        st.integers(1, 9).map(lambda size: Variable("b", (size,), filler=-80.0)),
        st.tuples(*[st.integers(1, 6)] * 4).map(lambda s: Variable("w", (s[0] * s[1] * s[2], s[3]), s[:3])),
    )
)
def test_a_variable_comes_back_as_it_was(variable: Variable) -> None:
    array = np.random.default_rng(1).standard_normal(variable.shape).astype(np.float32)
    laid = variable.lay(array)
    assert not any(extent % 4 for extent in laid.shape[1:])
    np.testing.assert_array_equal(variable.take(laid.tobytes()), array)
    assert np.count_nonzero(laid != variable.filler) == array.size


def test_on_pocl_a_sample_is_drawn_once_and_matrices_are_turned_in_squares() -> None:
    """They are not on lavapipe, which cuts long loops short, nor where a way to transpose was asked for."""
    training, graph = TrainingOptions(SAMPLES, 1), sigmoids()

    def plan(limits: Limits = LIMITS, **options: Any) -> Plan:
        return compile_training(graph, training, Options(**{"backend": "opencl", **options}), limits).plan

    def gathered(of: Plan) -> int:
        return next(step.work_items[0] for step in of.steps if isinstance(step, Dispatch) and step.layer == "gather")

    assert gathered(plan()) == 8 < gathered(plan(backend="vulkan")) == gathered(plan(Limits(unified_memory=True)))
    assert {"turn"} == {each.kernel for each in plan().programs} & {"turn", "transpose"}
    assert {"transpose"} == {each.kernel for each in plan(transpose="naive").programs} & {"turn", "transpose"}


def test_on_pocl_a_work_item_takes_all_channels_of_a_pixel() -> None:
    """It does so in windows and pools; not on lavapipe, and not on a GPU."""
    training, graph = TrainingOptions(SAMPLES, 1), pictures()

    def items(backend: Backend, limits: Limits) -> dict[str, int]:
        plan = compile_training(graph, training, Options(backend), limits).plan
        kernels = {program.id: program.kernel for program in plan.programs}
        own = [step for step in plan.steps if isinstance(step, Dispatch)]
        return {kernels[step.program]: step.work_items[0] for step in reversed(own)}

    pocl, lavapipe, gpu = items("opencl", LIMITS), items("vulkan", LIMITS), items("opencl", Limits())
    several = {"unfold": 28, "fold": 8, "max_pool": 8, "max_pool_gradient": 8, "average_pool_gradient": 8}
    for name, numbers in several.items():
        assert numbers * pocl[name] == lavapipe[name] == gpu[name], name


@pytest.mark.parametrize("unified", [True, False])
def test_with_updates_on_the_host_nothing_lasts_on_the_device_but_the_data(unified: bool) -> None:
    """A pass is a segment on either side; what goes between them lies where both see it, where there is such memory."""
    training = TrainingOptions(SAMPLES, 1, momentum=0.5, pretrain_epochs=1, updates="host")
    limits = replace(LIMITS, unified_memory=unified, offset_alignment=16)  # less than the CPU backend's own
    plan = compile_training(sigmoids(), training, Options("vulkan"), limits).plan
    pools = {pool.id: pool for pool in plan.pools}
    for buffer in plan.buffers:
        assert buffer.offset % (64 if pools[buffer.pool].api else 16) == 0
        if buffer.role in ("variable", "data"):
            assert pools[buffer.pool].api == ("cpu" if buffer.role == "variable" else "")
    sides = [api for api, _ in segments(plan)]
    assert sides == [TRANSFER, "vulkan", TRANSFER, "cpu"] * len(plan.stages)
    assert plan.requires.total_bytes == sum(pool.bytes for pool in plan.pools if not pool.api)
    places = {buffer.id: buffer for buffer in plan.buffers}
    ends = [places[name] for step in plan.steps if isinstance(step, Transfer) for name in (step.source, step.target)]
    own = {pools[buffer.pool].memory for buffer in ends if not pools[buffer.pool].api}
    assert own == {"host_visible" if unified else "device"}


def test_a_layer_is_one_kernel_on_either_way_per_node() -> None:
    """Study A's three, its error and its steps; of anything but dense layers they are refused."""
    training = TrainingOptions(SAMPLES, 1, pretrain_epochs=1, steps="per_node")
    plan = compile_training(sigmoids(), training, Options("opencl"), LIMITS).plan
    kernels = {program.id: program.kernel for program in plan.programs}
    stage = plan.stages[-1]
    ran = [kernels[step.program] for step in plan.steps[stage.begin : stage.end] if isinstance(step, Dispatch)]
    around = {"gather_bytes", "cross_entropy", "gradient_step", "count_batch"}
    assert [name for name in ran if name not in around] == ["feed_forward"] * 3 + ["back_propagate"] * 3
    published, many = (load_workload(network="classifier_784", onnx=None, seed=1, batch=size) for size in (64, 260))
    whole = replace(training, samples=300, pretrain_epochs=0)
    compile_training(published, whole, Options("opencl"), LIMITS)
    for graph, options, said in (
        (pictures(), Options("opencl"), "of dense layers; conv1 is 'conv'"),
        (many, Options("opencl"), "at most 256 samples"),
        (published, Options("vulkan"), "lavapipe ends them"),
    ):
        with pytest.raises(OptionError, match=said):
            compile_training(graph, whole, options, LIMITS)


def test_kernels_and_operations_of_the_cpu_take_the_same() -> None:
    """But for `turn`: products of the CPU backend read what is turned where it lies."""
    for name in sorted(KERNELS.keys() - {"turn"}):
        kernel = KERNELS[name]
        assert [(p.name, p.kind, p.access) for p in kernel.parameters] == [
            (p.name, p.kind, p.access) for p in CPU_OPERATIONS[name]
        ]


REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "half": ({}, {"precision": "fp16"}, "fp32 or relaxed"),
    "too few samples": ({"samples": 4}, {}, "a batch of 8"),
    "momentum": ({"momentum": 1.0}, {}, "momentum"),
    "no epoch": ({"epochs": 0}, {}, "at least one epoch"),
    "joined steps of the host": ({"updates": "host", "steps": "joined"}, {}, "joined steps update weights on the"),
    "the host's own updates": ({"updates": "host"}, {"backend": "cpu"}, "is the host's own"),
    "per node on the CPU": ({"steps": "per_node"}, {"backend": "cpu"}, "steps are per_node on OpenCL and Vulkan alone"),
    "layers on the CPU": ({}, {"on_cpu": "products"}, "leave `on_cpu` out"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    changes, options, said = REFUSED[name]
    with pytest.raises(OptionError, match=said):
        training = TrainingOptions(**{"samples": SAMPLES, "epochs": 1, **changes})
        compile_training(sigmoids(), training, Options(**{"backend": "opencl", **options}), LIMITS)


def test_what_has_no_gradient_is_refused() -> None:
    net = NetworkBuilder("normed", 1, (4, 8, 5, 5))
    graph = net.finish(net.softmax("prob", net.flatten("flat", net.lrn("norm", net.conv("conv", net.input, 4, 3)))))
    with pytest.raises(UnsupportedNode, match=r"norm: 'lrn' has no gradient; known: dense"):
        compile_training(graph, TrainingOptions(8, 1), Options("opencl"), LIMITS)
    with pytest.raises(OptionError, match="pretraining needs dense layers"):
        compile_training(pictures(), TrainingOptions(8, 1, pretrain_epochs=1), Options("opencl"), LIMITS)


STAGES: dict[str, tuple[dict[str, Any], str]] = {
    "a gap": ({"begin": 1}, "steps 1 to"),
    "an end beyond": ({"end": 10_000}, "to 10000"),
    "steps of none": ({"end": 3}, "steps from 3 on are of no stage"),
    "too many": ({"epochs": 10**6, "batches": 10**6}, "more than a counter holds"),
    "no variable": ({"counter": "data"}, "its counter 'data' is no variable"),
}


@pytest.mark.parametrize("name", STAGES)
def test_a_wrong_stage_is_refused(name: str) -> None:
    changes, said = STAGES[name]
    plan = compile_training(sigmoids(), TrainingOptions(SAMPLES, 1), Options("cpu"), LIMITS).plan
    stage = Stage.model_validate({**plan.stages[0].model_dump(), **changes})
    with pytest.raises(PlanError, match=said):
        validate(plan.model_copy(update={"stages": (stage,)}), LIMITS)


def test_what_a_pass_leaves_to_the_next_lies_in_variables() -> None:
    plan = compile_training(sigmoids(), TrainingOptions(SAMPLES, 1), Options("cpu"), LIMITS).plan
    stage = plan.stages[0].model_copy(update={"end": len(plan.steps) - 1})
    with pytest.raises(PlanError, match="before it is written"):
        validate(plan.model_copy(update={"steps": plan.steps[1:], "stages": (stage,)}), LIMITS)
