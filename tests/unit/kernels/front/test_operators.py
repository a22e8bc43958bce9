"""Every ONNX operator that is imported means what onnxruntime computes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from kernels.errors import ModelError
from kernels.frontend.onnx import OLDEST_OPSET, VERIFIED_OPSET, load_onnx
from kernels.reference import evaluate

from .onnx_models import assert_agrees, save_model

OPSETS = (OLDEST_OPSET, 11, 13, 18, VERIFIED_OPSET)


@pytest.fixture
def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def normal(rng: np.random.Generator, *shape: int) -> np.ndarray[Any, Any]:
    return rng.standard_normal(shape).astype(np.float32)


def node(op: str, *inputs: str, **attributes: Any) -> Any:
    return helper.make_node(op, list(inputs), ["y"], **attributes)


def check(
    folder: Path, one: Any, inputs: dict[str, Any], constants: dict[str, Any] | None = None, *, opset: int = 17
) -> Any:
    shapes = {name: array.shape for name, array in inputs.items()}
    path = save_model(folder / "m.onnx", [one], shapes, ["y"], constants, opset=opset)
    return assert_agrees(path, inputs)


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("op", ["Relu", "Sigmoid", "Identity", "Dropout", "GlobalAveragePool"])
def test_one_input(tmp_path: Path, rng: np.random.Generator, op: str, opset: int) -> None:
    check(tmp_path, node(op, "x"), {"x": normal(rng, 2, 3, 5, 4)}, opset=opset)


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"strides": [2, 1], "pads": [1, 0, 2, 1]},
        {"dilations": [2, 3], "pads": [2, 2, 2, 2]},
        {"group": 2},
        {"auto_pad": "SAME_UPPER", "strides": [2, 3]},
        {"auto_pad": "SAME_LOWER", "strides": [2, 2]},
        {"auto_pad": "VALID"},
    ],
)
def test_conv(tmp_path: Path, rng: np.random.Generator, opset: int, attributes: dict[str, Any]) -> None:
    weight = normal(rng, 6, 4 // attributes.get("group", 1), 3, 2)
    constants = {"w": weight, "b": normal(rng, 6)}
    check(tmp_path, node("Conv", "x", "w", "b", **attributes), {"x": normal(rng, 2, 4, 11, 12)}, constants, opset=opset)


@pytest.mark.parametrize("multiplier", [1, 2])
def test_depthwise_conv(tmp_path: Path, rng: np.random.Generator, multiplier: int) -> None:
    one = node("Conv", "x", "w", group=6, pads=[1, 1, 1, 1], strides=[2, 2], kernel_shape=[3, 3])
    check(tmp_path, one, {"x": normal(rng, 2, 6, 9, 8)}, {"w": normal(rng, 6 * multiplier, 1, 3, 3)})


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER", "VALID"])
def test_pool_auto_pad(tmp_path: Path, rng: np.random.Generator, opset: int, op: str, auto_pad: str) -> None:
    one = node(op, "x", kernel_shape=[3, 2], strides=[2, 2], auto_pad=auto_pad)
    check(tmp_path, one, {"x": normal(rng, 1, 3, 10, 7)}, opset=opset)


@pytest.mark.parametrize("opset", [10, 11, 19, VERIFIED_OPSET])
@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize("ceil", [0, 1])
@pytest.mark.parametrize("extent", [7, 8, 9, 13])
def test_pool_ceil_mode(tmp_path: Path, rng: np.random.Generator, opset: int, op: str, ceil: int, extent: int) -> None:
    one = node(op, "x", kernel_shape=[3, 3], strides=[2, 3], ceil_mode=ceil)
    check(tmp_path, one, {"x": normal(rng, 1, 2, extent, extent + 1)}, opset=opset)


@pytest.mark.parametrize("opset", [6 + 1, 10, 11, 19, VERIFIED_OPSET])
@pytest.mark.parametrize("include", [0, 1])
def test_average_pool_counts_pads(tmp_path: Path, rng: np.random.Generator, opset: int, include: int) -> None:
    one = node("AveragePool", "x", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 0], count_include_pad=include)
    check(tmp_path, one, {"x": normal(rng, 1, 2, 8, 7)}, opset=opset)


@pytest.mark.parametrize("opset", OPSETS)
def test_clip(tmp_path: Path, rng: np.random.Generator, opset: int) -> None:
    inputs = {"x": 3 * normal(rng, 2, 3, 4)}
    if opset < 11:
        check(tmp_path, node("Clip", "x", min=-1.0, max=2.0), inputs, opset=opset)
    else:
        bounds = {"low": np.float32(-1), "high": np.float32(2)}
        check(tmp_path, node("Clip", "x", "low", "high"), inputs, bounds, opset=opset)
        check(tmp_path, node("Clip", "x", "", "high"), inputs, bounds, opset=opset)
        check(tmp_path, node("Clip", "x", "low"), inputs, {"low": np.float32(-np.inf)}, opset=opset)


@pytest.mark.parametrize("ends", [(-np.inf, 2), (0, np.inf), (1, np.inf), (-np.inf, np.inf)])
def test_an_infinite_bound_clips_nothing(tmp_path: Path, ends: tuple[float, float]) -> None:
    x = np.float32([-np.inf, -3, 0.5, 3, np.inf])
    bounds = dict(zip(("low", "high"), np.float32(ends), strict=True))
    path = save_model(tmp_path / "m.onnx", [node("Clip", "x", *bounds)], {"x": x.shape}, ["y"], bounds)
    np.testing.assert_array_equal(evaluate(load_onnx(path), {"x": x})["y"], np.clip(x, *ends))


def test_a_divisor_without_an_inverse_divides(tmp_path: Path) -> None:
    x, divisor = np.float32([[1e-10, -2e-10]]), np.float32(1e-40)
    path = save_model(tmp_path / "m.onnx", [node("Div", "x", "d")], {"x": x.shape}, ["y"], {"d": divisor})
    np.testing.assert_allclose(evaluate(load_onnx(path), {"x": x})["y"], np.divide(x, divisor, dtype=np.float64), 1e-6)


@pytest.mark.parametrize("opset", OPSETS)
def test_leaky_relu(tmp_path: Path, rng: np.random.Generator, opset: int) -> None:
    for attributes in ({}, {"alpha": 0.2}, {"alpha": 0.0}, {"alpha": 1.0}, {"alpha": -0.5}):
        check(tmp_path, node("LeakyRelu", "x", **attributes), {"x": normal(rng, 2, 3, 4)}, opset=opset)


@pytest.mark.parametrize("opset", OPSETS)
def test_hard_sigmoid(tmp_path: Path, rng: np.random.Generator, opset: int) -> None:
    for attributes in ({}, {"alpha": 0.5}, {"alpha": -0.3, "beta": 0.25}):
        check(tmp_path, node("HardSigmoid", "x", **attributes), {"x": 4 * normal(rng, 2, 3, 4)}, opset=opset)


@pytest.mark.parametrize("opset", [opset for opset in OPSETS if opset >= 14])
def test_hard_swish(tmp_path: Path, rng: np.random.Generator, opset: int) -> None:
    check(tmp_path, node("HardSwish", "x"), {"x": 4 * normal(rng, 2, 3, 4, 5)}, opset=opset)


def test_hard_swish_is_not_in_older_opsets(tmp_path: Path) -> None:
    path = save_model(tmp_path / "m.onnx", [node("HardSwish", "x")], {"x": (2, 3)}, ["y"], opset=13)
    with pytest.raises(ModelError, match="HardSwish came in opset 14, the model has opset 13; export"):
        load_onnx(path)


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("axis", [1, 2, -1])
def test_concat(tmp_path: Path, rng: np.random.Generator, opset: int, axis: int) -> None:
    shapes = [[2, 3, 4, 5] for _ in range(3)]
    for i, shape in enumerate(shapes):
        shape[axis] += i
    inputs = {f"x{i}": normal(rng, *shape) for i, shape in enumerate(shapes)}
    check(tmp_path, node("Concat", *inputs, axis=axis), inputs, opset=opset)


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("op", ["Add", "Mul", "Sub", "Div"])
@pytest.mark.parametrize("shape", [(), (1,), (5,), (3, 1, 1), (1, 3, 1, 1), (4, 1), (3, 4, 1), (2, 3, 4, 5)])
def test_binary_with_constant(
    tmp_path: Path, rng: np.random.Generator, op: str, shape: tuple[int, ...], opset: int
) -> None:
    constant = normal(rng, *shape)
    constant = np.sign(constant) * (np.abs(constant) + np.float32(0.1))
    inputs = {"x": normal(rng, 2, 3, 4, 5)}
    graph = check(tmp_path, node(op, "x", "c"), inputs, {"c": constant}, opset=opset)
    if op in ("Add", "Mul"):
        check(tmp_path, node(op, "c", "x"), inputs, {"c": constant}, opset=opset)
    b = graph.shapes[graph.nodes[0].inputs[1]]
    assert len(b) == 4
    assert b == (2, 3, 4, 5) or sum(extent > 1 for extent in b) <= 1


@pytest.mark.parametrize("op", ["Add", "Mul"])
def test_binary_of_activations(tmp_path: Path, rng: np.random.Generator, op: str) -> None:
    check(tmp_path, node(op, "a", "b"), {"a": normal(rng, 2, 3, 4, 5), "b": normal(rng, 2, 3, 4, 5)})
    check(tmp_path, node(op, "a", "a"), {"a": normal(rng, 2, 3)})


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("shape", [(3, 4), (3, 4, 5, 2)])
def test_batch_normalization(tmp_path: Path, rng: np.random.Generator, opset: int, shape: tuple[int, ...]) -> None:
    weights = {name: normal(rng, 4) for name in ("gamma", "beta", "mean")}
    weights["variance"] = rng.uniform(0.1, 2, 4).astype(np.float32)
    one = node("BatchNormalization", "x", *weights, epsilon=1e-3)
    check(tmp_path, one, {"x": normal(rng, *shape)}, weights, opset=opset)


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("trans_a", [0, 1])
@pytest.mark.parametrize("trans_b", [0, 1])
@pytest.mark.parametrize("c", [(6,), (1, 6), (1,), (4, 6), (4, 1), ()])
def test_gemm(
    tmp_path: Path, rng: np.random.Generator, opset: int, trans_a: int, trans_b: int, c: tuple[int, ...]
) -> None:
    a = normal(rng, *((5, 4) if trans_a else (4, 5)))
    b = normal(rng, *((6, 5) if trans_b else (5, 6)))
    one = node("Gemm", "a", "b", "c", transA=trans_a, transB=trans_b, alpha=0.7, beta=1.3)
    check(tmp_path, one, {"a": a}, {"b": b, "c": normal(rng, *c)}, opset=opset)


def test_gemm_without_c_keeps_the_weight(tmp_path: Path, rng: np.random.Generator) -> None:
    graph = check(tmp_path, node("Gemm", "a", "b"), {"a": normal(rng, 2, 3)}, {"b": normal(rng, 3, 4)})
    assert list(graph.constants) == ["b"]


@pytest.mark.parametrize(("a", "b"), [((4, 5), (5, 6)), ((2, 4, 5), (5, 6)), ((2, 3, 4, 5), (5, 1))])
def test_matmul_with_constant(tmp_path: Path, rng: np.random.Generator, a: tuple[int, ...], b: tuple[int, ...]) -> None:
    check(tmp_path, node("MatMul", "a", "b"), {"a": normal(rng, *a)}, {"b": normal(rng, *b)})


@pytest.mark.parametrize(("a", "b"), [((4, 5), (5, 6)), ((2, 4, 5), (2, 5, 6)), ((2, 3, 4, 5), (2, 3, 5, 1))])
def test_matmul_of_activations(
    tmp_path: Path, rng: np.random.Generator, a: tuple[int, ...], b: tuple[int, ...]
) -> None:
    check(tmp_path, node("MatMul", "a", "b"), {"a": normal(rng, *a), "b": normal(rng, *b)})


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("axis", [0, 1, 2, 3])
def test_flatten(tmp_path: Path, rng: np.random.Generator, opset: int, axis: int) -> None:
    check(tmp_path, node("Flatten", "x", axis=axis), {"x": normal(rng, 2, 3, 4)}, opset=opset)


@pytest.mark.parametrize("target", [(2, -1), (0, -1), (0, 0, 4, 5), (-1,), (0, 6, 2, 5), (6, 20)])
def test_reshape(tmp_path: Path, rng: np.random.Generator, target: tuple[int, ...]) -> None:
    check(tmp_path, node("Reshape", "x", "s"), {"x": normal(rng, 2, 3, 4, 5)}, {"s": np.array(target, np.int64)})


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("attributes", [{}, {"axis": 1}, {"axis": 2}, {"axis": 3}, {"axis": 0}])
def test_softmax(tmp_path: Path, rng: np.random.Generator, opset: int, attributes: dict[str, int]) -> None:
    inputs = {"x": 4 * normal(rng, 2, 3, 4, 5)}
    check(tmp_path, node("Softmax", "x", **attributes), inputs, opset=opset)
    if not attributes:
        check(tmp_path, node("Softmax", "x"), {"x": normal(rng, 3, 7)}, opset=opset)


@pytest.mark.parametrize("size", [1, 3, 5, 9])
def test_lrn(tmp_path: Path, rng: np.random.Generator, size: int) -> None:
    x = {"x": normal(rng, 2, 7, 3, 4)}
    check(tmp_path, node("LRN", "x", size=size), x)
    check(tmp_path, node("LRN", "x", size=size, alpha=0.3, beta=0.5, bias=2.0), x)


@pytest.mark.parametrize(
    ("shape", "perm"),
    [
        ((2, 3), None),
        ((2, 3, 4), (1, 0, 2)),
        ((2, 3, 4, 5), (0, 2, 3, 1)),
        ((2, 3, 4, 5), None),
        ((2, 3, 2, 4, 5), (0, 2, 1, 3, 4)),
        ((2, 3, 2, 4, 5, 2), (0, 3, 4, 5, 1, 2)),
    ],
)
def test_transpose(
    tmp_path: Path, rng: np.random.Generator, shape: tuple[int, ...], perm: tuple[int, ...] | None
) -> None:
    attributes = {} if perm is None else {"perm": perm}
    graph = check(tmp_path, node("Transpose", "x", **attributes), {"x": normal(rng, *shape)})
    assert all(len(one.attributes["perm"]) <= 4 for one in graph.nodes if one.op == "transpose")


@pytest.mark.parametrize("opset", [11, 13, VERIFIED_OPSET])
def test_squeeze_and_unsqueeze(tmp_path: Path, rng: np.random.Generator, opset: int) -> None:
    def with_axes(op: str, axes: list[int]) -> tuple[Any, dict[str, Any]]:
        if opset < 13:
            return node(op, "x", axes=axes), {}
        return node(op, "x", "axes"), {"axes": np.array(axes, np.int64)}

    x = normal(rng, 2, 1, 3, 1)
    for one, constants in (with_axes("Squeeze", [1]), with_axes("Squeeze", [-1, 1]), with_axes("Unsqueeze", [0, -1])):
        check(tmp_path, one, {"x": x}, constants, opset=opset)
    check(tmp_path, node("Squeeze", "x"), {"x": x}, opset=opset)


@pytest.mark.parametrize("opset", [11, 17, 18, VERIFIED_OPSET])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_mean_over_the_image(tmp_path: Path, rng: np.random.Generator, opset: int, keepdims: int) -> None:
    x = {"x": normal(rng, 2, 3, 4, 5)}
    if opset < 18:
        check(tmp_path, node("ReduceMean", "x", axes=[2, -1], keepdims=keepdims), x, opset=opset)
    else:
        axes = {"axes": np.array([-2, 3], np.int64)}
        check(tmp_path, node("ReduceMean", "x", "axes", keepdims=keepdims), x, axes, opset=opset)


def test_cast_to_float(tmp_path: Path, rng: np.random.Generator) -> None:
    check(tmp_path, node("Cast", "x", to=TensorProto.FLOAT), {"x": normal(rng, 2, 3)})


def test_lrn_wider_than_all_channels(tmp_path: Path, rng: np.random.Generator) -> None:
    for size in (5, 7, 21):
        check(tmp_path, node("LRN", "x", size=size, alpha=0.5), {"x": normal(rng, 1, 3, 2, 2)})
    path = save_model(tmp_path / "m.onnx", [node("LRN", "x", size=1 << 40)], {"x": (1, 3, 2, 2)}, ["y"])
    assert load_onnx(path).nodes[0].attributes["size"] == 5


def test_split_of_which_one_part_is_left_out(tmp_path: Path) -> None:
    """onnxruntime crashes here."""
    parts = helper.make_node("Split", ["x"], ["y", "", "z"], axis=1)
    graph = load_onnx(save_model(tmp_path / "m.onnx", [parts], {"x": (1, 6)}, ["y", "z"], opset=13))
    assert [(n.output, n.attributes["start"], n.attributes["stop"]) for n in graph.nodes] == [("y", 0, 2), ("z", 4, 6)]


@pytest.mark.parametrize("op", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("computed", [False, True])
def test_sequences_that_end_earlier(
    tmp_path: Path, rng: np.random.Generator, op: str, direction: str, computed: bool
) -> None:
    """PyTorch packs them so: their lengths are constants, or an input."""
    gates, turns = {"LSTM": 4, "GRU": 3, "RNN": 1}[op] * 4, 1 + (direction == "bidirectional")
    ends = ["y", "h", "c"][: 3 if op == "LSTM" else 2]
    one = helper.make_node(op, ["x", "w", "r", "", "n"], ends, hidden_size=4, direction=direction)
    whole = helper.make_node("Cast", ["lengths"], ["n"], to=TensorProto.INT32)
    weights = {"w": normal(rng, turns, gates, 3), "r": normal(rng, turns, gates, 4)}
    given = {"x": normal(rng, 5, 4, 3)}
    lengths = np.asarray([5, 1, 3, 4], np.float32)
    constants, inputs = (weights, {**given, "lengths": lengths}) if computed else (
        {**weights, "lengths": lengths}, given
    )  # fmt: skip
    shapes = {name: array.shape for name, array in inputs.items()}
    assert_agrees(save_model(tmp_path / "m.onnx", [whole, one], shapes, ends, constants), inputs)


@pytest.mark.parametrize(("left", "right"), [((6, 9), (9,)), ((9,), (9, 5)), ((9,), (9,)), ((2, 3, 9), (9,))])
def test_product_with_a_vector(
    tmp_path: Path, rng: np.random.Generator, left: tuple[int, ...], right: tuple[int, ...]
) -> None:
    check(tmp_path, node("MatMul", "a", "b"), {"a": normal(rng, *left), "b": normal(rng, *right)})


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [("bii->bi", [(2, 3, 3)]), ("ii", [(4, 4)]), ("iij,jk->ik", [(3, 3, 4), (4, 5)]), ("aba,b->ab", [(3, 2, 3), (2,)])],
)
def test_a_diagonal_of_einsum(
    tmp_path: Path, rng: np.random.Generator, equation: str, shapes: list[tuple[int, ...]]
) -> None:
    inputs = {name: normal(rng, *shape) for name, shape in zip("xz", shapes, strict=False)}
    check(tmp_path, node("Einsum", *inputs, equation=equation), inputs)


def test_a_result_that_is_named_twice(tmp_path: Path, rng: np.random.Generator) -> None:
    """PyTorch exports so a module that returns one tensor in two places; onnxruntime gives it twice."""
    path = save_model(tmp_path / "m.onnx", [node("Relu", "x")], {"x": (2, 3)}, ["y", "y"])
    assert assert_agrees(path, {"x": normal(rng, 2, 3)}).outputs == ("y",)


def test_each_direction_has_its_own_numbers_of_activations(tmp_path: Path, rng: np.random.Generator) -> None:
    """A function that takes none (Tanh) has no number in the list."""
    one = node(
        "LSTM", "x", "w", "r", hidden_size=4, direction="bidirectional",
        activations=["HardSigmoid", "Tanh", "Tanh"] * 2, activation_alpha=[0.1, 0.4], activation_beta=[0.5, 0.3],
    )  # fmt: skip
    check(tmp_path, one, {"x": normal(rng, 5, 2, 3)}, {"w": normal(rng, 2, 16, 3), "r": normal(rng, 2, 16, 4)})
