"""Passes change how a graph is computed, never what."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from onnx import helper

from kernels.frontend.load import random_inputs
from kernels.frontend.networks import NETWORKS
from kernels.frontend.networks.builder import NetworkBuilder, seeded_normal
from kernels.frontend.onnx import load_onnx
from kernels.ir.fusion import ALL
from kernels.ir.graph import Graph, Node
from kernels.ir.shapes import output_shape
from kernels.lower.aliases import plan_aliases
from kernels.passes import PASSES, optimise
from kernels.passes.channels import keep_shuffled, patches_of_rows, sink_transposes
from kernels.passes.fold_pads import fold_pads
from kernels.passes.moves.transposes import moves_no_data
from kernels.passes.order import order
from kernels.passes.unread_taps import drop_unread_taps
from kernels.reference import evaluate
from tests.unit.kernels.back.graphs import Builder, shuffled_units

from .onnx_models import save_model

SHAPE = (2, 4, 3, 5)


class Sketch:
    """A graph under construction whose tensors mostly share one shape."""

    def __init__(self) -> None:
        self.graph = Graph("sketch", ("x",), (), [], {"x": SHAPE}, {})

    def constant(self, *shape: int) -> str:
        name = f"c{len(self.graph.shapes)}"
        self.graph.constants[name] = 0.5 * seeded_normal(1, name, shape)
        self.graph.shapes[name] = shape
        return name

    def add(self, op: str, *inputs: str, **attributes: Any) -> str:
        name = f"t{len(self.graph.shapes)}"
        node = Node(name, op, inputs, (name,), attributes)
        self.graph.shapes[name] = output_shape(node, self.graph.shapes)
        self.graph.nodes.append(node)
        return name

    def conv(self, x: str, *, bias: bool = True) -> str:
        c = self.graph.shapes[x][1]
        weights = [self.constant(4, c, 3, 3), *([self.constant(4)] if bias else [])]
        return self.add("conv", x, *weights, strides=(1, 1), pads=(1, 1, 1, 1), dilations=(1, 1), groups=1)

    def affine(self, x: str) -> str:
        channels = self.graph.shapes[x][1]
        return self.add("affine", x, self.constant(channels), self.constant(channels))

    def finish(self, *outputs: str) -> Graph:
        return replace(self.graph, outputs=outputs)


STEPS = (
    "conv", "conv_no_bias", "affine", "relu", "clip", "sigmoid", "add", "mul", "add_channel", "mul_scalar", "identity",
    "whole", "there_and_back", "turned_relu", "concat", "concat_again", "flat_and_back",
    "leaky_relu", "hard_swish", "instance_norm", "mirrored_conv", "zero_padded_conv",
    "silu", "tanh", "blend", "by_channel", "shuffle", "halves", "depthwise", "as_rows", "dense_rows",
    "pixels", "row_conv",
)  # fmt: skip


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """A random graph: any step may read any earlier tensor, and any tensor may be an output."""
    sketch, tensors = Sketch(), ["x"]
    for step in draw(st.lists(st.sampled_from(STEPS), min_size=1, max_size=9)):
        recent = st.sampled_from(tensors[-2:])
        tensors.append(_step(sketch, step, draw(recent), draw(st.sampled_from(tensors))))
    outputs = draw(st.sets(st.sampled_from(tensors[1:]), max_size=2)) | {tensors[-1]}
    if draw(st.booleans()):
        outputs.add(_classifier(sketch, tensors[-1], draw(st.permutations([1, 2, 3]))))
    return sketch.finish(*sorted(outputs))


def _step(sketch: Sketch, step: str, x: str, other: str) -> str:
    add = sketch.add
    match step:
        case "conv" | "conv_no_bias":
            return sketch.conv(x, bias=step == "conv")
        case "mirrored_conv" | "zero_padded_conv":
            mode = "reflect" if step == "mirrored_conv" else "constant"
            padded = add("pad", x, pads=(1, 2, 1, 2), mode=mode, value=0.0)
            weight = sketch.constant(4, 4, 3, 5)
            return add("conv", padded, weight, strides=(1, 1), pads=(0,) * 4, dilations=(1, 1), groups=1)
        case "affine":
            return sketch.affine(x)
        case "clip":
            return add("clip", x, min=-0.5, max=0.5)
        case "leaky_relu":
            return add("leaky_relu", x, slope=0.2)
        case "hard_swish":
            return add("hard_swish", x)
        case "instance_norm":
            return add("instance_norm", x, sketch.constant(4), sketch.constant(4), epsilon=1.0)
        case "add" | "mul":
            return add(step, x, other)
        case "silu":
            return add("mul", x, add("sigmoid", x))
        case "tanh":
            return add("map", x, expression=("tanh", "a"))
        case "blend":
            return add("map", x, other, expression=("select", ("less", "a", 0.1), "b", ("mul", "a", 0.5)))
        case "by_channel":
            return add("map", sketch.constant(4, 1, 1), x, expression=("sub", "b", "a"))
        case "add_channel":
            return add("add", x, sketch.constant(1, 4, 1, 1))
        case "mul_scalar":
            return add("mul", x, sketch.constant(1, 1, 1, 1))
        case "identity":
            return add("reshape", x, shape=SHAPE)
        case "whole":
            whole = add("slice", x, axis=1, start=0, stop=SHAPE[1])
            return add("pad", whole, pads=(0, 0, 0, 0), mode="constant", value=0.0)
        case "there_and_back":
            return add("transpose", add("transpose", x, perm=(0, 2, 3, 1)), perm=(0, 3, 1, 2))
        case "turned_relu":
            return add("transpose", add("relu", add("transpose", x, perm=(3, 2, 0, 1))), perm=(2, 3, 1, 0))
        case "concat":
            return sketch.conv(add("concat", x, other, axis=1))
        case "concat_again":
            before = [node.inputs for node in sketch.graph.nodes if node.op == "concat"]
            return sketch.conv(add("concat", *(before[-1] if before else (other,)), x, axis=1))
        case "shuffle":
            parted = add("reshape", x, shape=(2, 2, 2, 15))
            return add("reshape", add("transpose", parted, perm=(0, 2, 1, 3)), shape=SHAPE)
        case "halves":
            halves = add("slice", x, axis=1, start=2, stop=4), add("slice", other, axis=1, start=0, stop=2)
            return add("concat", *halves, axis=1)
        case "depthwise":
            weights = sketch.constant(4, 1, 3, 3), sketch.constant(4)
            return add("conv", x, *weights, strides=(1, 1), pads=(1, 1, 1, 1), dilations=(1, 1), groups=4)
        case "as_rows":
            sides = (add("sigmoid", add("transpose", each, perm=(0, 2, 3, 1))) for each in (x, other))
            one, two = (add("transpose", side, perm=(0, 3, 1, 2)) for side in sides)
            return add("relu", add("add", add("mul", one, sketch.constant(4, 1, 1)), two))
        case "dense_rows":
            rows = add("reshape", add("transpose", x, perm=(0, 2, 3, 1)), shape=(30, 4))
            rows = add("reshape", add("dense", rows, sketch.constant(4, 4)), shape=(2, 3, 5, 4))
            return add("add", add("mul", add("transpose", rows, perm=(0, 3, 1, 2)), sketch.constant(4, 1, 1)), other)
        case "pixels" | "row_conv":
            rows = add("sigmoid", add("transpose", x, perm=(0, 2, 3, 1)))
            size, filters = ((1, 1), 4) if step == "pixels" else ((1, 5), 20)
            weights = sketch.constant(filters, 4, *size), sketch.constant(filters)
            image = add("transpose", rows, perm=(0, 3, 1, 2))
            image = add("conv", image, *weights, strides=size, pads=(0,) * 4, dilations=(1, 1), groups=1)
            return add("reshape", image, shape=SHAPE)
        case "flat_and_back":
            return add("reshape", add("reshape", x, shape=(prod(SHAPE),)), shape=SHAPE)
        case _:
            return add(step, x)


def _classifier(sketch: Sketch, x: str, perm: list[int]) -> str:
    flat = sketch.add("reshape", sketch.add("transpose", x, perm=(0, *perm)), shape=(2, 60))
    return sketch.affine(sketch.add("dense", flat, sketch.constant(60, 3)))


def assert_same_meaning(graph: Graph, changed: Graph) -> None:
    inputs = random_inputs(graph, 3)
    before, after = evaluate(graph, inputs), evaluate(changed, inputs)
    assert (changed.inputs, changed.outputs) == (graph.inputs, graph.outputs)
    for name in graph.outputs:
        assert changed.shapes[name] == graph.shapes[name]
        scale = max(1.0, float(np.abs(before[name]).max()))
        np.testing.assert_allclose(after[name], before[name], rtol=0, atol=1e-5 * scale, err_msg=name)
    assert_consistent(changed)


def assert_consistent(graph: Graph) -> None:
    """Every tensor is written once, before it is read, and has the shape that its node gives it."""
    written = {*graph.inputs, *graph.constants}
    for node in graph.nodes:
        assert {name for name in node.inputs if name} <= written, node
        assert node.output not in written, node
        if "pool" not in node.op:
            assert graph.shapes[node.output] == output_shape(node, graph.shapes), node
        written.update(node.outputs)
    assert set(graph.shapes) == written
    assert all(graph.shapes[name] == array.shape for name, array in graph.constants.items())


@settings(max_examples=100, deadline=None)
@given(graph=graphs(), fuse=st.frozensets(st.sampled_from(sorted(ALL))) | st.just(ALL), reflect=st.booleans())
def test_optimise_keeps_the_meaning_of_any_graph(graph: Graph, fuse: frozenset[str], reflect: bool) -> None:
    assert_same_meaning(graph, optimise(graph, fuse=fuse, reflect=reflect))


@settings(max_examples=100, deadline=None)
@given(graph=graphs(), change=st.sampled_from([keep_shuffled, patches_of_rows, sink_transposes]))
def test_what_gpus_are_given_keeps_the_meaning(graph: Graph, change: Callable[[Graph], Graph]) -> None:
    nodes, shapes, constants = list(graph.nodes), dict(graph.shapes), dict(graph.constants)
    assert_same_meaning(graph, change(graph))
    assert (graph.nodes, graph.shapes, graph.constants.keys()) == (nodes, shapes, constants.keys())


@pytest.mark.parametrize("images", [1, 2])
@pytest.mark.parametrize("half", [3, 4, 8])
def test_shuffled_channels_are_copied_once_a_reader(images: int, half: int) -> None:
    graph = shuffled_units(images, half, units=4)
    kept = keep_shuffled(graph)
    assert_same_meaning(graph, kept)
    counts = Counter(node.op for node in kept.nodes)
    assert counts == {"conv": 16, "max_pool": 1, "concat": 4, "take": 5, "add": 1, "reshape": 1}
    aliases = plan_aliases(kept, multiple=4)
    assert all(name in aliases for node in kept.nodes if node.op == "concat" for name in node.inputs)


@settings(max_examples=60, deadline=None)
@given(graph=graphs())
def test_folding_pads_keeps_the_meaning_and_its_argument(graph: Graph) -> None:
    nodes, shapes = list(graph.nodes), dict(graph.shapes)
    folded = fold_pads(graph)
    assert_same_meaning(graph, folded)
    assert (graph.nodes, graph.shapes) == (nodes, shapes)
    pads = {node.output for node in folded.nodes if node.op == "pad" and any(node.attributes["pads"])}
    assert not pads & {node.inputs[0] for node in folded.nodes if node.op == "conv"}


@settings(max_examples=60, deadline=None)
@given(
    extent=st.integers(1, 6), window=st.integers(1, 5), stride=st.integers(1, 3), gap=st.integers(1, 7),
    before=st.integers(0, 30), after=st.integers(0, 30),
)  # fmt: skip
def test_taps_that_meet_pads_alone_are_dropped(
    extent: int, window: int, stride: int, gap: int, before: int, after: int
) -> None:
    """The drawn taps lie along the rows; along the columns one tap of three is left."""
    assume(extent + before + after > (window - 1) * gap)
    sketch = Sketch()
    sketch.graph.shapes["x"] = (2, 4, extent, 5)
    attributes = {"strides": (stride, 1), "pads": (before, 9, after, 9), "dilations": (gap, 9), "groups": 1}
    graph = sketch.finish(sketch.add("conv", "x", sketch.constant(3, 4, window, 3), sketch.constant(3), **attributes))
    changed = drop_unread_taps(graph)
    assert_same_meaning(graph, changed)
    (conv,) = changed.nodes
    rows, columns = changed.shapes[conv.inputs[1]][2:]
    at = np.arange(graph.shapes[conv.output][2]) * stride - before
    read = [tap for tap in range(window) if ((at + tap * gap >= 0) & (at + tap * gap < extent)).any()]
    assert columns == 1
    assert rows <= window
    if read and before >= read[0] * gap and after >= (window - 1 - read[-1]) * gap:
        assert rows == read[-1] - read[0] + 1


@settings(max_examples=60, deadline=None)
@given(graph=graphs(), index=st.integers(0, len(PASSES) - 1))
def test_each_pass_keeps_the_meaning_and_its_argument(graph: Graph, index: int) -> None:
    nodes, shapes, constants = list(graph.nodes), dict(graph.shapes), dict(graph.constants)
    assert_same_meaning(graph, PASSES[index](graph, ALL))
    assert (graph.nodes, graph.shapes, graph.constants.keys()) == (nodes, shapes, constants.keys())


@pytest.mark.parametrize(
    ("network", "left"),
    [
        ("squeezenet_v1_0", {"conv": 26, "max_pool": 3, "concat": 8, "global_average_pool": 1}),
        ("mobilenet_v2", {"conv": 52, "global_average_pool": 1, "dense": 1}),
        ("resnet18", {"conv": 20, "max_pool": 1, "global_average_pool": 1, "dense": 1}),
        ("autoencoder_784", {"dense": 3}),
    ],
)
def test_networks_fuse_completely(network: str, left: dict[str, int]) -> None:
    graph = NETWORKS[network](1)
    fused = optimise(graph)
    ends = {} if network == "autoencoder_784" else {"reshape": 1, "softmax": 1}
    assert Counter(node.op for node in fused.nodes) == {**left, **ends}
    assert_same_meaning(graph, fused)


def test_residual_is_added_before_the_activation() -> None:
    net = NetworkBuilder("block", 1, (1, 4, 6, 6))
    branch = net.batch_norm("norm", net.conv("conv", net.input, 4, 3, pad=1, bias=False))
    fused = optimise(net.finish(net.relu(net.add("sum", net.input, branch))))
    (conv,) = fused.nodes
    assert conv.inputs[0] == conv.inputs[3] == "data"
    assert conv.attributes["activation"] == ("relu",)


def test_dense_takes_the_transposition_before_it() -> None:
    sketch = Sketch()
    flat = sketch.add("reshape", sketch.add("transpose", "x", perm=(0, 2, 3, 1)), shape=(2, 60))
    graph = sketch.finish(sketch.add("dense", flat, sketch.constant(60, 3)))
    fused = optimise(graph)
    assert [node.op for node in fused.nodes] == ["reshape", "dense"]
    assert_same_meaning(graph, fused)


@pytest.mark.parametrize("op", ["add", "mul"])
def test_dense_takes_the_constant_behind_its_reshape(op: str) -> None:
    sketch = Sketch()
    rows = sketch.add("dense", sketch.add("reshape", "x", shape=(24, 5)), sketch.constant(5, 7))
    shaped = sketch.add("reshape", rows, shape=(2, 4, 3, 7))
    graph = sketch.finish(sketch.add(op, shaped, sketch.constant(1, 1, 1, 7)))
    fused = optimise(graph)
    assert [node.op for node in fused.nodes] == ["reshape", "dense", "reshape"]
    assert_same_meaning(graph, fused)


@pytest.mark.parametrize("constant", [(1, 4, 1, 1), (1, 1, 1, 1), (2, 4, 3, 7)])
def test_dense_leaves_other_constants_behind_its_reshape(constant: tuple[int, ...]) -> None:
    sketch = Sketch()
    rows = sketch.add("dense", sketch.add("reshape", "x", shape=(24, 5)), sketch.constant(5, 7))
    shaped = sketch.add("reshape", rows, shape=(2, 4, 3, 7))
    graph = sketch.finish(sketch.add("add", shaped, sketch.constant(*constant)), sketch.add("sigmoid", shaped))
    assert_same_meaning(graph, optimise(graph))
    graph = sketch.finish(sketch.graph.nodes[-2].output)
    assert_same_meaning(graph, optimise(graph))


def test_transposition_stays_where_another_reads_the_dense_layers_input() -> None:
    sketch = Sketch()
    flat = sketch.add("reshape", sketch.add("transpose", "x", perm=(0, 2, 3, 1)), shape=(2, 60))
    graph = sketch.finish(sketch.add("dense", flat, sketch.constant(60, 3)), sketch.add("sigmoid", flat))
    assert_same_meaning(graph, optimise(graph))


@pytest.mark.parametrize("second", [(0, 2, 1, 3), (3, 0, 1, 2), (1, 2, 0, 3)])
def test_transpositions_become_one(second: tuple[int, ...]) -> None:
    sketch = Sketch()
    once = sketch.add("transpose", "x", perm=(1, 0, 2, 3))
    graph = sketch.finish(sketch.add("transpose", once, perm=second))
    fused = optimise(graph)
    assert [node.op for node in fused.nodes] == ["transpose"]
    assert_same_meaning(graph, fused)


@pytest.mark.parametrize("first", ["conv", "relu", "add"])
@pytest.mark.parametrize("reader", ["relu", "affine", "add", "output"])
def test_what_has_two_readers_is_kept(first: str, reader: str) -> None:
    """Whatever would be fused or folded, its other reader still sees the value before."""
    sketch = Sketch()
    shared = sketch.conv("x")
    results = []
    for op in (first, reader):
        if op == "output":
            results.append(shared)
        elif op in ("conv", "affine"):
            results.append(getattr(sketch, op)(shared))
        else:
            results.append(sketch.add(op, shared, *(["x"] if op == "add" else [])))
    graph = sketch.finish(*results)
    assert_same_meaning(graph, optimise(graph))


def test_both_branches_may_be_convolutions() -> None:
    sketch = Sketch()
    graph = sketch.finish(sketch.add("add", sketch.conv("x"), sketch.conv(sketch.conv("x"))))
    fused = optimise(graph)
    assert [node.op for node in fused.nodes] == ["conv"] * 3
    assert_same_meaning(graph, fused)


def test_nothing_is_folded_behind_a_residual_or_an_activation() -> None:
    """A second round finds what the first has fused."""
    sketch = Sketch()
    residual = sketch.affine(sketch.add("add", sketch.conv("x"), "x"))
    activated = sketch.add("sigmoid", sketch.add("relu", sketch.conv(residual)))
    graph = sketch.finish(sketch.affine(sketch.add("add", activated, residual)))
    fused = optimise(graph)
    assert_same_meaning(graph, optimise(fused))


@given(shape=st.lists(st.integers(1, 3), min_size=1, max_size=4), data=st.data())
def test_moves_no_data_is_exact(shape: list[int], data: st.DataObject) -> None:
    perm = data.draw(st.permutations(range(len(shape))))
    x = np.arange(prod(shape)).reshape(shape)
    assert moves_no_data(tuple(shape), perm) == np.array_equal(x.transpose(perm).ravel(), x.ravel())


def test_as_imported_every_onnx_output_stays(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["conv"]),
        helper.make_node("BatchNormalization", ["conv", *["one"] * 4], ["norm"]),
        helper.make_node("Relu", ["norm"], ["act"]),
        helper.make_node("Dropout", ["act"], ["drop"]),
        helper.make_node("Identity", ["drop"], ["same"]),
        helper.make_node("Gemm", ["same_flat", "m"], ["logits"], transB=1),
        helper.make_node("Softmax", ["logits"], ["y"]),
    ]
    nodes.insert(5, helper.make_node("Flatten", ["same"], ["same_flat"]))
    constants = {
        "w": np.ones((2, 3, 3, 3), np.float32), "one": np.ones(2, np.float32), "m": np.ones((4, 8), np.float32),
    }  # fmt: skip
    graph = load_onnx(save_model(tmp_path / "m.onnx", nodes, {"x": (1, 3, 4, 4)}, ["y"], constants))
    values = evaluate(graph, random_inputs(graph, 1), keep=True)
    assert [name for node in nodes for name in node.output if name not in values] == []
    assert Counter(node.op for node in graph.nodes)["affine"] == 1
    assert [node.op for node in optimise(graph).nodes] == ["conv", "reshape", "dense", "softmax"]


def _scaled_layers(count: int) -> Graph:
    build = Builder()
    x = build.input(1, 4, 3, 3)
    for _ in range(count):
        x = build.node("affine", [build.conv(x, 4, (1, 1)), build.constant(4), build.constant(4)], (1, 4, 3, 3))
    return build.outputs(x)


def _many_parts(count: int) -> Graph:
    build = Builder()
    x = build.input(1, 4, 3, 3)
    parts = [build.node("tanh", [x], (1, 4, 3, 3)) for _ in range(count)]
    return build.outputs(build.node("concat", parts, (1, 4 * count, 3, 3), axis=1))


@pytest.mark.parametrize("make", [_scaled_layers, _many_parts])
def test_passes_take_as_many_turns_as_the_graph_has_nodes(make: Callable[[int], Graph]) -> None:
    """Four times the nodes, at most five times the calls of functions."""

    def calls(count: int) -> int:
        graph, seen, before = make(count), Counter[str](), sys.getprofile()
        sys.setprofile(lambda frame, event, _: seen.update([event]))
        try:
            order(optimise(graph))
        finally:
            sys.setprofile(before)
        return seen["call"]

    assert calls(200) < 5 * calls(50)
