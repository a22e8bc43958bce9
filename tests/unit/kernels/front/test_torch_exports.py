"""The nodes of `torch.onnx.export` (PyTorch 2.13, its default exporter): opset 20, folded or with folding left to do.

The nodes are those that it wrote for small modules, named after the module; onnxruntime is the judge.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from kernels.compile import compile_graph
from kernels.ir.graph import Graph
from kernels.options import Limits, Options
from kernels.passes import prepare
from kernels.plan.opencl_interpreter import run_opencl

from .onnx_models import assert_agrees, run_onnxruntime, save_model

OPSET = 20
node = helper.make_node


@pytest.fixture
def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def normal(rng: np.random.Generator, *shape: int) -> np.ndarray[Any, Any]:
    return rng.standard_normal(shape).astype(np.float32)


def constant(name: str, value: Any, dtype: type = np.int64) -> Any:
    return node("Constant", [], [name], value=numpy_helper.from_array(np.asarray(value, dtype)))


def ints(name: str, *values: int) -> Any:
    return node("Constant", [], [name], value_ints=list(values))


def check(path: Path, x: Any, *, batch: int | None = None) -> Graph:
    """The import agrees with onnxruntime, and so does what OpenCL runs."""
    graph = assert_agrees(path, {"x": x}, batch=batch)
    run = run_opencl(compile_graph(graph, Options("opencl"), Limits(cpu_device=True)), {"x": x})
    for name, theirs in run_onnxruntime(path, {"x": x}).items():
        np.testing.assert_allclose(run.outputs[name], theirs, rtol=0, atol=1e-4 * max(1.0, np.abs(theirs).max()))
    return graph


@pytest.mark.parametrize("batch", [1, 2, 5])
def test_conv_norm_pool_linear_unfolded(tmp_path: Path, rng: np.random.Generator, batch: int) -> None:
    """A convolution without bias, its zeros made on the way, and `x.view(x.size(0), -1)` with a dynamic batch."""
    nodes = [
        node("Shape", ["x"], ["n0"], start=0, end=1), node("Squeeze", ["n0"], ["n"]),
        node("Shape", ["c.weight"], ["k0"], start=0, end=1), constant("one", [1]), node("Expand", ["k0", "one"], ["k"]),
        constant("zero", 0.0, np.float64), node("CastLike", ["zero", "x"], ["zero1"]),
        node("Expand", ["zero1", "k"], ["zeros"]),
        node("Conv", ["x", "c.weight", "zeros"], ["conv2d"], pads=[1, 1, 1, 1], strides=[2, 2], group=1,
             auto_pad="NOTSET", dilations=[1, 1]),
        node("BatchNormalization", ["conv2d", "b.weight", "b.bias", "b.mean", "b.var"], ["getitem"], epsilon=1e-5,
             momentum=0.1, training_mode=0),
        node("Relu", ["getitem"], ["relu"]),
        node("MaxPool", ["relu"], ["max_pool2d"], storage_order=0, dilations=[1, 1], ceil_mode=0, pads=[0, 0, 0, 0],
             auto_pad="NOTSET", strides=[2, 2], kernel_shape=[2, 2]),
        ints("minus", -1), node("Reshape", ["n", "minus"], ["n1"], allowzero=0), ints("rest", -1),
        node("Concat", ["n1", "rest"], ["target"], axis=0),
        node("Reshape", ["max_pool2d", "target"], ["view"], allowzero=1),
        node("Gemm", ["view", "f.weight", "f.bias"], ["y"], beta=1.0, transB=1, alpha=1.0, transA=0),
    ]  # fmt: skip
    weights = {
        "c.weight": normal(rng, 6, 3, 3, 3), "b.weight": normal(rng, 6), "b.bias": normal(rng, 6),
        "b.mean": normal(rng, 6), "b.var": np.abs(normal(rng, 6)) + 0.5, "f.weight": normal(rng, 5, 24),
        "f.bias": normal(rng, 5),
    }  # fmt: skip
    path = save_model(tmp_path / "m.onnx", nodes, {"x": ("batch", 3, 8, 8)}, ["y"], weights, opset=OPSET)
    graph = check(path, normal(rng, batch, 3, 8, 8), batch=batch)
    assert graph.shapes["y"] == (batch, 5)


def test_residual_mean_softmax(tmp_path: Path, rng: np.random.Generator) -> None:
    """AdaptiveAvgPool2d(1) is a ReduceMean, flatten a Reshape with allowzero, Dropout an Identity."""
    nodes = [
        node("Conv", ["x", "c.weight", "c.bias"], ["conv2d"], pads=[1, 1, 1, 1], strides=[1, 1], group=1),
        node("Add", ["x", "conv2d"], ["add"]), node("Relu", ["add"], ["relu"]),
        node("ReduceMean", ["relu", "axes"], ["mean"], noop_with_empty_axes=0, keepdims=1),
        node("Reshape", ["mean", "shape"], ["view"], allowzero=1), node("Identity", ["view"], ["clone"]),
        node("Gemm", ["clone", "f.weight", "f.bias"], ["linear"], transB=1), node("Softmax", ["linear"], ["y"], axis=1),
    ]  # fmt: skip
    weights = {
        "c.weight": normal(rng, 8, 8, 3, 3), "c.bias": normal(rng, 8), "axes": np.array([-1, -2]),
        "shape": np.array([-1, 8]), "f.weight": normal(rng, 5, 8), "f.bias": normal(rng, 5),
    }  # fmt: skip
    path = save_model(tmp_path / "m.onnx", nodes, {"x": ("batch", 8, 6, 6)}, ["y"], weights, opset=OPSET)
    check(path, normal(rng, 3, 8, 6, 6), batch=3)


def test_channel_shuffle(tmp_path: Path, rng: np.random.Generator) -> None:
    """`chunk`, a convolution of one half, `cat`, and the two halves interleaved."""
    nodes = [
        node("Split", ["x"], ["a", "b"], axis=1, num_outputs=2),
        node("Conv", ["b", "d.weight"], ["d"], group=4, pads=[1, 1, 1, 1]),
        node("Concat", ["a", "d"], ["cat"], axis=1), node("Reshape", ["cat", "five"], ["view"], allowzero=1),
        node("Transpose", ["view"], ["turned"], perm=[0, 2, 1, 3, 4]), node("Reshape", ["turned", "four"], ["y"]),
    ]  # fmt: skip
    five, four = np.array([-1, 2, 4, 5, 6]), np.array([-1, 8, 5, 6])
    weights = {"d.weight": normal(rng, 4, 1, 3, 3), "five": five, "four": four}
    path = save_model(tmp_path / "m.onnx", nodes, {"x": ("batch", 8, 5, 6)}, ["y"], weights, opset=OPSET)
    check(path, normal(rng, 2, 8, 5, 6), batch=2)


def test_input_transformed_channel_by_channel(tmp_path: Path, rng: np.random.Generator) -> None:
    """`x[:, i].unsqueeze(1) * a + b` for each channel, joined: how torchvision's Inception v3 begins."""
    nodes, parts = [], []
    for i in range(3):
        nodes += [
            node("Gather", ["x", f"i{i}"], [f"select{i}"], axis=1),
            node("Unsqueeze", [f"select{i}", "axis"], [f"u{i}"]),
            node("Mul", [f"u{i}", f"a{i}"], [f"mul{i}"]), node("Add", [f"mul{i}", f"a{i}"], [f"add{i}"]),
        ]  # fmt: skip
        parts.append(f"add{i}")
    nodes.append(node("Concat", parts, ["y"], axis=1))
    weights: dict[str, Any] = {f"a{i}": np.float32(0.5 - i) for i in range(3)}
    weights |= {f"i{i}": np.int64(i) for i in range(3)} | {"axis": np.array([1])}
    path = save_model(tmp_path / "m.onnx", nodes, {"x": (2, 3, 4, 5)}, ["y"], weights, opset=OPSET)
    check(path, normal(rng, 2, 3, 4, 5))


def lrn(*, size: int = 5, reshaped: bool = False, divided: str = "x") -> tuple[list[Any], dict[str, Any]]:
    """nn.LocalResponseNorm; unfolded it has one reshape more."""
    nodes = [
        node("Mul", ["x", "x"], ["mul"]), node("Reshape", ["mul", "target"], ["view"], allowzero=1),
        node("Pad", ["view", "pads"], ["pad"], mode="constant"),
        node("AveragePool", ["pad"], ["pool"], count_include_pad=1, ceil_mode=0, pads=[0] * 6, auto_pad="NOTSET",
             strides=[1, 1, 1], kernel_shape=[size, 1, 1]),
        node("Squeeze", ["pool", "axis"], ["squeeze"]),
        *([node("Reshape", ["squeeze", "back"], ["same"], allowzero=1)] if reshaped else []),
        constant("alpha", 0.3, np.float32),
        node("Mul", ["same" if reshaped else "squeeze", "alpha"], ["scaled"]), node("Add", ["scaled", "k"], ["add"]),
        node("Pow", ["add", "beta"], ["pow"]), node("Div", [divided, "pow"], ["y"]),
    ]  # fmt: skip
    before, after = size // 2, (size - 1) // 2
    constants = {
        "target": np.array([-1, 1, 7, 4, 3]), "pads": np.array([0, 0, before, 0, 0, 0, 0, after, 0, 0]),
        "axis": np.array([1]), "back": np.array([-1, 7, 4, 3]), "k": np.float32(2), "beta": np.float32(0.75),
    }  # fmt: skip
    return nodes, constants


@pytest.mark.parametrize("size", [1, 3, 5])
@pytest.mark.parametrize("reshaped", [False, True])
def test_local_response_norm(tmp_path: Path, rng: np.random.Generator, size: int, reshaped: bool) -> None:
    nodes, constants = lrn(size=size, reshaped=reshaped)
    path = save_model(tmp_path / "m.onnx", nodes, {"x": ("batch", 7, 4, 3)}, ["y"], constants, opset=OPSET)
    graph = check(path, normal(rng, 2, 7, 4, 3), batch=2)
    found = [one.op for one in prepare(graph, Options("opencl")).nodes]
    assert found == ["lrn"] or (size == 1 and "map" in found)


def test_what_is_no_local_response_norm_stays(tmp_path: Path, rng: np.random.Generator) -> None:
    """An even window lies elsewhere than LRN's; another dividend makes no LRN."""
    even, other = lrn(size=4), lrn(divided="z")
    other[0].insert(0, node("Relu", ["x"], ["z"]))
    for nodes, constants in (even, other):
        path = save_model(tmp_path / "m.onnx", nodes, {"x": (2, 7, 4, 3)}, ["y"], constants, opset=OPSET)
        graph = check(path, normal(rng, 2, 7, 4, 3))
        assert "lrn" not in [one.op for one in prepare(graph, Options("opencl")).nodes]


def norms() -> list[Any]:
    """Normalisations of x (rows of 8) and of p (an image) as exporters write them: PyTorch's of opset 11 to 16, its
    RMSNorm and `normalize` today, Keras' through tf2onnx, and an instance normalisation in single steps."""
    return [
        node("ReduceMean", ["x", "last"], ["m"]), node("Sub", ["x", "m"], ["d"]), node("Pow", ["d", "two"], ["d2"]),
        node("ReduceMean", ["d2", "last"], ["v"]), node("Add", ["v", "eps"], ["ve"]), node("Sqrt", ["ve"], ["r"]),
        node("Div", ["d", "r"], ["z"]), node("Mul", ["z", "w"], ["zw"]), node("Add", ["zw", "b"], ["layer"]),
        node("Pow", ["x", "two"], ["x2"]), node("ReduceMean", ["x2", "last"], ["q"]), node("Add", ["q", "eps"], ["qe"]),
        node("Sqrt", ["qe"], ["qr"]), node("Reciprocal", ["qr"], ["qi"]), node("Mul", ["x", "qi"], ["y"]),
        node("Mul", ["w", "y"], ["rms"]),
        node("ReduceL2", ["x", "last"], ["l"]), node("Clip", ["l", "eps"], ["lc"]), node("Shape", ["x"], ["shape"]),
        node("Expand", ["lc", "shape"], ["le"]), node("Div", ["x", "le"], ["unit"]),
        node("Reciprocal", ["r"], ["i"]), node("Mul", ["i", "w"], ["s"]), node("Mul", ["x", "s"], ["xs"]),
        node("Mul", ["m", "s"], ["ms"]), node("Sub", ["b", "ms"], ["t"]), node("Add", ["xs", "t"], ["keras"]),
        node("ReduceMean", ["p", "pixels"], ["pm"]), node("Sub", ["p", "pm"], ["pd"]),
        node("Mul", ["pd", "pd"], ["pd2"]), node("ReduceMean", ["pd2", "pixels"], ["pv"]),
        node("Add", ["eps", "pv"], ["pe"]), node("Sqrt", ["pe"], ["pr"]),
        node("Div", ["one", "pr"], ["pi"]), node("Mul", ["pd", "pi"], ["instance"]),
    ]  # fmt: skip


def test_normalisations_in_single_steps_are_one_node_each(tmp_path: Path, rng: np.random.Generator) -> None:
    constants = {
        "last": np.array([-1]), "pixels": np.array([2, 3]), "two": np.float32(2), "eps": np.float32(1e-5),
        "one": np.float32(1), "w": normal(rng, 8), "b": normal(rng, 8),
    }  # fmt: skip
    outputs = ["layer", "rms", "unit", "keras", "instance"]
    shapes = {"x": (2, 3, 8), "p": (2, 3, 4, 5)}
    path = save_model(tmp_path / "m.onnx", norms(), shapes, outputs, constants, opset=OPSET)
    inputs = {name: normal(rng, *shape) for name, shape in shapes.items()}
    graph = assert_agrees(path, inputs)
    assert [one.op for one in prepare(graph, Options("opencl")).nodes] == [*["row_norm"] * 4, "instance_norm"]
    run = run_opencl(compile_graph(graph, Options("opencl"), Limits(cpu_device=True)), inputs)
    for name, theirs in run_onnxruntime(path, inputs).items():
        np.testing.assert_allclose(run.outputs[name], theirs, rtol=0, atol=1e-5 * max(1.0, np.abs(theirs).max()))


@pytest.mark.parametrize("op", ["Add", "Mul", "Sub"])
def test_what_is_repeated_for_an_elementwise_step_is_not_copied(
    tmp_path: Path, rng: np.random.Generator, op: str
) -> None:
    """MobileViTv2's context, `expand_as` a picture's rows, and multiplied; here along any axes, on either side."""
    shape = rng.integers(2, 5, 4)
    part = np.where(rng.random(4) < 0.5, 1, shape)
    operands = rng.permutation(["wide", "e"])
    nodes = [node("Relu", ["x"], ["wide"]), node("Expand", ["c", "shape"], ["e"]), node(op, operands, ["y"])]
    inputs = {"x": shape.tolist(), "c": part.tolist()}
    path = save_model(tmp_path / "m.onnx", nodes, inputs, ["y"], {"shape": shape}, opset=OPSET)
    graph = assert_agrees(path, {"x": normal(rng, *shape), "c": normal(rng, *part)})
    steps = [one.op for one in prepare(graph, Options("opencl")).nodes]
    assert steps == ["map"] or (part == shape).all(), steps


def test_cast_like(tmp_path: Path, rng: np.random.Generator) -> None:
    nodes = [
        node("CastLike", ["x", "x"], ["same"]), node("CastLike", ["one", "numbers"], ["whole"]),
        node("Cast", ["whole"], ["number"], to=TensorProto.FLOAT), node("Add", ["same", "number"], ["y"]),
    ]  # fmt: skip
    constants = {"one": np.float32(1.7), "numbers": np.array([3])}
    path = save_model(tmp_path / "m.onnx", nodes, {"x": (2, 3)}, ["y"], constants, opset=OPSET)
    graph = assert_agrees(path, {"x": normal(rng, 2, 3)})
    assert [array.item() for array in graph.constants.values()] == [1.0]


def test_all_elements_in_their_order_are_a_reshape(tmp_path: Path, rng: np.random.Generator) -> None:
    """`as_strided`, as the default exporter writes it: a flat tensor, and the place of each element."""
    shape = tuple(map(int, rng.integers(1, 6, 3)))
    places = np.arange(np.prod(shape)).reshape(shape[0], -1, 1)
    turned = places[:, ::-1].copy()
    nodes = [
        node("Reshape", ["x", "flat"], ["row"]), node("Gather", ["row", "places"], ["y"], axis=0),
        node("Gather", ["row", "turned"], ["z"], axis=0),
    ]  # fmt: skip
    constants = {"flat": np.array([-1]), "places": places, "turned": turned}
    path = save_model(tmp_path / "m.onnx", nodes, {"x": shape}, ["y", "z"], constants, opset=OPSET)
    graph = assert_agrees(path, {"x": normal(rng, *shape)})
    moved = not np.array_equal(places, turned)
    assert [one.op for one in graph.nodes if one.op not in ("reshape", "slice")] == ["take"] * moved
