"""A model that cannot be imported says which node or tensor, why, and how to mend it."""

from __future__ import annotations

import os
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from kernels.errors import CompileError, ModelError, UnsupportedNode
from kernels.frontend.networks import NETWORKS
from kernels.frontend.networks.export import to_onnx
from kernels.frontend.onnx import NEWEST_OPSET, load_onnx
from kernels.reference import evaluate

from .onnx_models import save_model


def refuse(path: Path, *said: str, kind: type[CompileError] = ModelError) -> None:
    """The import raises this error, and its message holds every text in `said` and the file's name."""
    with pytest.raises(kind) as caught:
        load_onnx(path)
    for text in (*said, path.name):
        assert text in str(caught.value)


ONES = np.ones(4, np.float32)
DEFORMED = {"w": np.ones((2, 4, 2, 2), np.float32), "o": np.zeros((1, 8, 7, 7), np.float32)}


def one_node(
    path: Path, op: str, constants: dict[str, Any] | None = None, *, shape: tuple[Any, ...] = (1, 4, 8, 8),
    opset: int = 17, more_inputs: tuple[str, ...] = (), outputs: tuple[str, ...] = ("y",), **attributes: Any,
) -> Path:  # fmt: skip
    names = ["x", *more_inputs, *(constants or {})]
    node = helper.make_node(op, names, list(outputs), name="the_node", **attributes)
    return save_model(path / "m.onnx", [node], {"x": shape}, ["y"], constants, opset=opset)


@pytest.fixture
def lenet(tmp_path: Path) -> Path:
    to_onnx(NETWORKS["lenet"](1), tmp_path / "lenet.onnx")
    return tmp_path / "lenet.onnx"


def test_no_file(tmp_path: Path) -> None:
    refuse(tmp_path / "absent.onnx", "No such file", "give the path")


@pytest.mark.parametrize("content", [b"", b"not a model\n" * 40, b"\x00" * 100, b"PK\x03\x04" + b"x" * 50])
def test_no_model(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "m.onnx").write_bytes(content)
    refuse(tmp_path / "m.onnx", "no ONNX model")


def test_what_the_input_counts_is_refused_with_where_to_cut(tmp_path: Path) -> None:
    nodes = [helper.make_node("NonZero", ["x"], ["n"]), helper.make_node("Tile", ["n", "twice"], ["y"])]
    path = save_model(tmp_path / "m.onnx", nodes, {"x": (5,)}, ["y"], {"twice": np.array([1, 2])})
    refuse(path, "Cut the model before it (onnx.utils.extract_model, outputs n, twice)")


@pytest.mark.parametrize("part", [0.1, 0.5, 0.9, 0.999])
def test_truncated(lenet: Path, part: float) -> None:
    content = lenet.read_bytes()
    lenet.write_bytes(content[: int(part * len(content))])
    refuse(lenet, "truncated")


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_bytes_never_crash(tmp_path: Path, data: st.DataObject) -> None:
    """Whatever a few changed bytes do to a model: it is imported, or refused with an error of the compiler's."""
    path = _small_model(tmp_path)
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.integers(len(content) // 2, len(content)))])
    try:
        graph = load_onnx(path)
    except CompileError as e:
        assert path.name in str(e)
    else:
        assert set(graph.outputs) <= set(graph.shapes)


def _small_model(folder: Path) -> Path:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1], strides=[2, 2]),
        helper.make_node("Clip", ["a", "low"], ["b"]),
        helper.make_node("MaxPool", ["b"], ["c"], kernel_shape=[2, 2], ceil_mode=1),
        helper.make_node("Transpose", ["c"], ["d"], perm=[0, 2, 3, 1]),
        helper.make_node("Reshape", ["d", "s"], ["e"]),
        helper.make_node("Gemm", ["e", "m"], ["f"], transB=1),
        helper.make_node("Softmax", ["f"], ["y"], axis=1),
    ]
    constants = {
        "w": np.ones((2, 3, 3, 3), np.float32), "low": np.float32(0),
        "s": np.array([1, -1], np.int64), "m": np.ones((4, 18), np.float32),
    }  # fmt: skip
    return save_model(folder / "small.onnx", nodes, {"x": (1, 3, 8, 8)}, ["y"], constants)


def test_an_operator_that_onnx_never_had(tmp_path: Path) -> None:
    """tf2onnx leaves Keras 3's exact GELU so."""
    path = one_node(tmp_path, "Erfc")
    refuse(path, "'the_node'", "ONNX has no such operator", "tf2onnx", kind=UnsupportedNode)


def test_unknown_operator_says_where_known_ones_are(tmp_path: Path) -> None:
    refuse(
        one_node(tmp_path, "MaxRoiPool", opset=13),
        "the_node",
        "MaxRoiPool",
        "opset 13",
        "limits.md",
        kind=UnsupportedNode,
    )


def test_every_obstacle_is_told_at_once(tmp_path: Path) -> None:
    """The import goes on behind what is refused where ONNX tells the shape. Where it does not, and where a whole number
    is missing, only what would be refused in any case is told."""

    def node(op: str, *names: str, **attributes: Any) -> Any:
        return helper.make_node(op, list(names[:-1]), [names[-1]], name=f"the_{op}_{names[-1]}", **attributes)

    nodes = [
        node("RandomNormalLike", "x", "a"),  # the operator is not known
        node("Conv", "x", "w", "b"),  # its weight has another number of channels: ONNX cannot tell the shape
        node("Relu", "b", "c"),
        node("Col2Im", "x", "x", "x", "d"),
        node("LRN", "x", "e", size=-3),
        node("MaxRoiPool", "e", "g", "h", pooled_shape=[2, 2]),
        node("Relu", "h", "y"),
        node("Multinomial", "rows", "numbers", sample_size=2),
        node("Cast", "numbers", "shape", to=TensorProto.INT64),
        node("Reshape", "x", "shape", "i"),  # only for the first's sake
        node("RandomNormalLike", "i", "j"),
        node("Unique", "x", "k", sorted=0),
        node("Relu", "k", "l"),
        node("RandomNormalLike", "l", "m"),
    ]  # fmt: skip
    constants = {"w": np.ones((4, 3, 1, 1), np.float32), "g": np.zeros((1, 5), np.float32)}
    constants["rows"] = np.ones((1, 5), np.float32)
    path = save_model(tmp_path / "m.onnx", nodes, {"x": (1, 4, 8, 8)}, ["y"], constants)
    with pytest.raises(ModelError) as caught:
        load_onnx(path)
    found = {each.node: each for each in caught.value.obstacles}
    assert found.keys() == {
        "the_RandomNormalLike_a", "the_Conv_b", "the_Col2Im_d", "the_LRN_e", "the_MaxRoiPool_h",
        "the_Multinomial_numbers", "the_RandomNormalLike_j", "the_Unique_k", "the_RandomNormalLike_m",
    }  # fmt: skip
    assert all(name in str(caught.value) and name in each.reason for name, each in found.items())
    assert "9 obstacles stand in the way" in str(caught.value)
    assert (found["the_RandomNormalLike_a"].operator, found["the_RandomNormalLike_a"].opset) == ("RandomNormalLike", 17)


@pytest.mark.parametrize(
    ("op", "constants", "attributes", "said"),
    [
        ("Conv", {"w": np.ones((4, 4, 3, 3), np.float32)}, {"group": 0}, "groups is 0"),
        ("BatchNormalization", {"s": ONES, "b": ONES[:3], "m": ONES, "v": ONES}, {}, "expected (C,) with C = 4"),
        ("LRN", {}, {"size": -3}, "size is -3"),
        ("Unsqueeze", {"a": np.array([1, 1])}, {}, "name one twice"),
        ("Clip", {"a": ONES}, {}, "expected a scalar"),
        (
            "Resize",
            {"r": np.zeros(0, np.float32), "s": np.array([1, 1, np.nan, 2], np.float32)},
            {},
            "positive numbers",
        ),
        ("Conv", {"w": np.zeros((0, 4, 3, 3), np.float32)}, {}, "is empty"),
        ("Reshape", {"s": np.array([-3, -64])}, {}, "is no shape"),
        ("Tile", {"r": np.array([1, 1, 10**5, 10**5])}, {}, "more than the 2147483648"),
        ("OneHot", {"d": np.array(10**12), "v": np.array([0, 1], np.float32)}, {}, "are supported"),
        ("MaxPool", {}, {"kernel_shape": [0, 0]}, "positive numbers"),
        ("DepthToSpace", {}, {"blocksize": 0}, "do not divide"),
        ("Einsum", {}, {"equation": "->->.."}, "does not fit"),
        ("Transpose", {}, {"perm": [0, 0, 1, 2]}, "does not permute"),
    ],
)
def test_numbers_that_make_no_sense(
    tmp_path: Path, op: str, constants: dict[str, Any], attributes: dict[str, Any], said: str
) -> None:
    refuse(one_node(tmp_path, op, constants, **attributes), "the_node", said)


def test_constants_that_grow_are_refused_before_they_are_made(tmp_path: Path) -> None:
    """Each of these joins what came before eight times; ONNX's own shape inference would take gigabytes."""
    nodes = [helper.make_node("Concat", [f"c{k}"] * 8, [f"c{k + 1}"], axis=0) for k in range(5)]
    nodes.append(helper.make_node("Add", ["x", "c5"], ["y"]))
    constants = {"c0": np.ones(1 << 18, np.float32)}
    path = save_model(tmp_path / "m.onnx", nodes, {"x": (1, 4)}, ["y"], constants)
    tracemalloc.start()
    refuse(path, "c4", "at most 1073741824 are supported")
    assert tracemalloc.get_traced_memory()[1] < 1 << 30
    tracemalloc.stop()


def test_operator_of_another_domain(tmp_path: Path) -> None:
    refuse(one_node(tmp_path, "Conv", domain="com.example"), "the_node", "com.example", kind=UnsupportedNode)


@pytest.mark.parametrize("opset", [6, onnx.defs.onnx_opset_version() + 1])
def test_opset_out_of_range(tmp_path: Path, opset: int) -> None:
    refuse(one_node(tmp_path, "Relu", opset=opset), f"opset {opset}", "from 7 to")


def test_newer_opset_passes_where_the_operator_is_unchanged(tmp_path: Path) -> None:
    newest = onnx.defs.onnx_opset_version()
    if onnx.defs.get_schema("Cast", newest).since_version <= NEWEST_OPSET:
        pytest.skip("this onnx package has no operator of ours that changed since the verified opset")
    assert load_onnx(one_node(tmp_path, "Relu", opset=newest)).nodes[0].op == "relu"
    path = one_node(tmp_path, "Cast", opset=newest, to=1)
    refuse(path, "the_node", "Cast", f"opset {newest}", f"opset {NEWEST_OPSET} or older", kind=UnsupportedNode)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_weights_that_are_no_numbers(tmp_path: Path, value: float) -> None:
    weight = np.ones((5, 4, 3, 3), np.float32)
    weight[1, 2, 0, 1] = value
    path = one_node(tmp_path, "Conv", {"kernel_7": weight})
    refuse(path, "'kernel_7'", "the_node", "1 NaN or infinite values of 180")


def test_nan_in_batch_normalisation_and_product(tmp_path: Path) -> None:
    good, bad = np.ones(4, np.float32), np.full(4, np.nan, np.float32)
    weights = {"gamma": good, "beta": good, "mean": bad, "variance": good}
    refuse(one_node(tmp_path, "BatchNormalization", weights), "'mean'", "NaN")
    refuse(one_node(tmp_path, "Gemm", {"b": np.full((3, 2), np.nan, np.float32)}, shape=(1, 3)), "'b'", "NaN")
    refuse(one_node(tmp_path, "Add", {"c": np.full((8,), np.nan, np.float32)}), "'c'", "NaN")


def test_scale_beyond_fp32(tmp_path: Path) -> None:
    huge, tiny = np.full(4, 3e38, np.float32), np.full(4, 1e-6, np.float32)
    weights = {"gamma": huge, "beta": tiny, "mean": tiny, "variance": tiny}
    refuse(one_node(tmp_path, "BatchNormalization", weights, epsilon=1e-9), "fp32")


@pytest.mark.parametrize("error", [ValueError("unpack"), IndexError(), KeyError("k"), ZeroDivisionError()])
def test_what_nobody_expects_is_told_of_the_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """It is told in words of the model: what the node has, and what it takes; none of Python's."""

    def fails(*_: Any) -> None:
        raise error

    monkeypatch.setattr("kernels.frontend.onnx.import_node", fails)
    path = one_node(tmp_path, "LeakyRelu", alpha=0.5)
    with pytest.raises(ModelError, match=r"\(LeakyRelu\): its inputs and attributes do not fit .* given 'x'") as told:
        load_onnx(path)
    assert "alpha=0.5; ONNX expects X; check the sizes" in str(told.value)
    assert "unpack" not in str(told.value) and "Error" not in str(told.value)


@pytest.mark.parametrize("extent", ["height", None])
def test_dynamic_dimension(tmp_path: Path, extent: Any) -> None:
    size = extent or "x.2"
    path = one_node(tmp_path, "Relu", shape=(1, 3, extent, 8))
    refuse(path, f"'x' is open in dimension 2 ('{size}')", f"--size {size}=N")


def test_classical_machine_learning_is_sent_to_onnxruntime(tmp_path: Path, seed: int) -> None:
    """Operators of `ai.onnx.ml`, drawn from ONNX's own list, in front of a node that is wrong by itself."""
    domain, rng = "ai.onnx.ml", np.random.default_rng(seed)
    known = sorted(schema.name for schema in onnx.defs.get_all_schemas() if schema.domain == domain)
    drawn = rng.choice(known, 5, replace=False)
    nodes = [helper.make_node(op, ["x"], [f"y{i}"], name=f"no{i}", domain=domain) for i, op in enumerate(drawn)]
    nodes += [helper.make_node("Relu", ["y0"], ["z"]), helper.make_node("Multinomial", ["x"], ["n"], name="draws")]
    path = save_model(tmp_path / "m.onnx", nodes, {"x": (1, 4)}, ["z"])
    model = onnx.load(path)
    model.opset_import.append(helper.make_opsetid(domain, 3))
    onnx.save(model, path)
    with pytest.raises(UnsupportedNode) as caught:
        load_onnx(path)
    told = {each.node: each.reason for each in caught.value.obstacles}
    assert told.keys() == {"draws", *(f"no{i}" for i in range(5))}
    for index, op in enumerate(drawn):
        assert op in told[f"no{index}"] and "run this model with onnxruntime" in told[f"no{index}"]


def test_all_inputs_and_nodes_are_told_at_once(tmp_path: Path) -> None:
    """A pipeline that reads text, with open sizes, and an operator that is not known."""
    nodes = [
        helper.make_node("StringNormalizer", ["words"], ["clean"], name="cleans"),
        helper.make_node("TfIdfVectorizer", ["clean"], ["numbers"], name="counts", mode="TF", min_gram_length=1,
                         max_gram_length=1, max_skip_count=0, ngram_counts=[0], ngram_indexes=[0]),
        helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Relu", ["good"], ["z"]),
        helper.make_node("Multinomial", ["good"], ["drawn"], name="draws"),
    ]  # fmt: skip
    ports = [
        helper.make_tensor_value_info("words", TensorProto.STRING, ("batch", 1)),
        helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 3, "height", "width")),
        helper.make_tensor_value_info("good", TensorProto.FLOAT, (1, 3)),
    ]
    outputs = [helper.make_empty_tensor_value_info(name) for name in ("numbers", "y", "z", "drawn")]
    model = helper.make_model(helper.make_graph(nodes, "test", ports, outputs), ir_version=8)
    model.opset_import[0].version = 17
    onnx.save(model, tmp_path / "m.onnx")
    with pytest.raises(ModelError) as caught:
        load_onnx(tmp_path / "m.onnx")
    told = {each.node: each.reason for each in caught.value.obstacles}
    assert told.keys() == {"words", "x", "cleans", "counts", "draws"}
    assert "STRING" in told["words"]
    assert "compute numbers from the text before" in told["words"]
    assert "dimension 2 ('height'), dimension 3 ('width')" in told["x"]
    assert "5 obstacles stand in the way" in str(caught.value)


def test_input_of_another_type(tmp_path: Path) -> None:
    node = helper.make_node("Relu", ["x"], ["y"])
    ports = [helper.make_tensor_value_info(name, TensorProto.COMPLEX64, (1, 3)) for name in "xy"]
    graph = helper.make_graph([node], "test", ports[:1], ports[1:])
    (tmp_path / "m.onnx").write_bytes(helper.make_model(graph, ir_version=8).SerializeToString())
    model = onnx.load(tmp_path / "m.onnx")
    model.opset_import[0].version = 17
    onnx.save(model, tmp_path / "m.onnx")
    refuse(tmp_path / "m.onnx", "'x'", "COMPLEX64", "only tensors of FLOAT")


@pytest.mark.parametrize(("groups", "channels"), [(3, 4), (2, 5), (2, 3)])
def test_groups_that_do_not_divide(tmp_path: Path, groups: int, channels: int) -> None:
    weight = np.ones((6, channels // groups or 1, 3, 3), np.float32)
    path = one_node(tmp_path, "Conv", {"w": weight}, shape=(1, channels, 8, 8), group=groups)
    refuse(path, "the_node", f"{groups} groups", f"{channels} input")


@pytest.mark.parametrize(
    ("op", "constants", "attributes", "said"),
    [
        ("Conv", {"w": np.ones((2, 4, 9, 9), np.float32)}, {}, ("(9, 9)", "(8, 8)")),
        ("Conv", {"w": np.ones((2, 4, 3), np.float32)}, {}, ("(2, 4, 3)", "1 to 3 dimensions")),
        ("Conv", {"w": np.ones((2, 4, 3, 3), np.float32)}, {"kernel_shape": [5, 5]}, ("kernel_shape (5, 5)",)),
        ("Conv", {"w": np.ones((2, 4, 3, 3), np.int64)}, {}, ("W ('w')", "int64", "expected tensor(float)")),
        ("Conv", {"w": np.ones((2, 4, 3, 3), np.float32)}, {"pads": [-1, 0, 0, 0]}, ("pads",)),
        ("MaxPool", {}, {"kernel_shape": [2, 2], "pads": [2, 0, 0, 0]}, ("pads", "(2, 2)")),
        ("MaxPool", {}, {"kernel_shape": [2, 2, 2]}, ("kernel_shape",)),
        ("MaxPool", {}, {}, ("kernel_shape",)),
        ("Concat", {}, {}, ("axis",)),
        ("Transpose", {}, {"perm": [0, 1, 1, 2]}, ("perm",)),
        ("Reshape", {"s": np.array([3, 5], np.int64)}, {}, ("256 elements", "(3, 5)")),
        ("Add", {"c": np.ones((5, 1, 1), np.float32)}, {}, ("(5, 1, 1)", "broadcast")),
        ("MatMul", {"b": np.ones((7, 2), np.float32)}, {}, ("(7, 2)",)),
        ("Softmax", {}, {"axis": 9}, ("axis",)),
        ("BatchNormalization", {n: np.ones(3, np.float32) for n in "abcd"}, {}, ("(3,)",)),
        ("BatchNormalization", {n: ONES[:1] if n == "a" else ONES for n in "abcd"}, {}, ("('a')", "(1,)", "C = 4")),
        ("Conv", {"w": np.ones((6, 4, 1, 1), np.float32), "b": ONES}, {}, ("B ('b')", "(4,)", "(M,) with M = 6")),
        ("Conv", {"w": np.ones((6, 3, 1, 1), np.float32)}, {}, ("(6, 3, 1, 1)", "(K, 4, kh, kw)")),
        ("Conv", {"w": np.ones((6, 4, 1, 1), np.float32)}, {"group": 0}, ("groups is 0", "at least 1")),
        ("Conv", {"w": np.ones((0, 4, 1, 1), np.float32)}, {}, ("weight 'w'", "is empty")),
        ("Conv", {"w": np.ones((6, 4, 1, 1), np.float32)}, {"strides": [1 << 40] * 2}, ("strides", "2147483647")),
        ("LRN", {}, {"size": -3}, ("size is -3",)),
        ("LRN", {}, {"size": 3, "beta": np.inf}, ("beta is inf",)),
        ("Unsqueeze", {"a": np.array([1, 1])}, {}, ("axes [1, 1]", "twice")),
        ("Slice", {"s": np.array([0, 1]), "e": np.array([4])}, {}, ("ends ('e')", "(1,)", "k = 2")),
        ("Clip", {"low": ONES}, {}, ("min ('low')", "(4,)", "a scalar")),
        ("Resize", {"r": ONES[:0], "s": np.array([1, 1, np.nan, 2], np.float32)}, {}, ("nan", "positive numbers")),
        ("Reshape", {"s": np.array([-4, -64])}, {}, ("[-4, -64]", "may be -1")),
        ("Reshape", {"s": ONES}, {}, ("shape ('s')", "tensor(float)", "expected tensor(int64)")),
        ("Gather", {"i": ONES}, {}, ("indices ('i')", "tensor(float)")),
        ("MatMul", {"b": np.ones((8, 2), np.float64)}, {}, ("B ('b')", "tensor(double)", "expected tensor(float)")),
        ("ReduceMean", {}, {"keepdims": 2}, ("keepdims is 2", "0, 1")),
        ("Gelu", {}, {"approximate": "erf", "opset": 20}, ("approximate is 'erf'", "none, tanh")),
        ("DepthToSpace", {}, {"blocksize": 2, "mode": "reflect"}, ("mode is 'reflect'", "DCR, CRD")),
        ("LayerNormalization", {"s": np.ones((2, 1, 4, 8, 8), np.float32)}, {}, ("(2, 1, 4, 8, 8)", "(1, 4, 8, 8)")),
        ("DeformConv", DEFORMED, {"kernel_shape": [2], "opset": 19}, ("kernel_shape [2]", "(2, 2)")),
        ("ConvTranspose", {"w": np.ones((4, 2, 3, 3), np.float32)}, {"output_padding": [1, 1]}, ("output_padding",)),
        ("ConvTranspose", {"w": np.ones((4, 2, 3, 3), np.float32)}, {"output_shape": [12, 10]}, ("12 outputs",)),
        ("ScatterND", {"i": np.zeros((2, 1), np.int64), "u": ONES}, {}, ("(4,)", "(2, 4, 8, 8)")),
        ("ScatterElements", {"i": np.zeros((1, 4, 8, 1), np.int64), "u": ONES}, {}, ("(4,)", "(1, 4, 8, 1)")),
        ("Compress", {"c": np.ones(9, np.bool_)}, {"axis": 3}, ("element 8 of 8",)),
        ("NegativeLogLikelihoodLoss", {"t": np.zeros((1, 7, 8), np.int64)}, {}, ("Input and target",)),
        ("SoftmaxCrossEntropyLoss", {"t": np.zeros((1, 1, 8), np.int64)}, {}, ("Input and target",)),
        ("ReduceMax", {"axes": np.array(1)}, {"opset": 18}, ("axes ('axes')", "()")),
        ("ReduceSum", {"axes": np.array([[1]])}, {}, ("axes ('axes')", "(1, 1)")),
        ("RotaryEmbedding", {n: np.ones((1, 8, 3 + (n == "s"))) for n in "cs"}, {"opset": 23}, ("(1, 8, 4)",)),
        ("RotaryEmbedding", {n: np.ones((1, 8, 3)) for n in "cs"}, {"opset": 23}, ("8 of 8",)),
        ("LSTM", {n: np.ones((1, 12, 3), np.float32) for n in "wr"}, {"layout": 2}, ("layout is 2",)),
        ("Celu", {}, {"alpha": 0.0}, ("given 'x' (1, 4, 8, 8) float32, alpha=0.0; ONNX expects X",)),
    ],
)  # fmt: skip
def test_what_a_node_asks_does_not_fit(
    tmp_path: Path, op: str, constants: dict[str, Any], attributes: dict[str, Any], said: tuple[str, ...]
) -> None:
    refuse(one_node(tmp_path, op, constants, **attributes), "the_node", *said)


def test_weight_that_is_an_activation(tmp_path: Path) -> None:
    node = helper.make_node("LSTM", ["x", "x2", "r"], ["y"], name="the_node", hidden_size=4)
    path = save_model(tmp_path / "m.onnx", [node], {"x": (5, 1, 3), "x2": (1, 16, 3), "r": (1, 16, 4)}, ["y"])
    refuse(path, "the_node", "'x2'", "must be a constant", kind=UnsupportedNode)


def test_training_mode(tmp_path: Path) -> None:
    path = one_node(tmp_path, "Dropout", {"ratio": np.float32(0.5), "training": np.bool_(True)})
    refuse(path, "the_node", "training", "inference", kind=UnsupportedNode)


@pytest.mark.parametrize("op", ["RandomNormalLike", "Bernoulli"])
def test_noise(tmp_path: Path, op: str) -> None:
    refuse(one_node(tmp_path, op), "the_node", "draws numbers", "as an input", kind=UnsupportedNode)


def test_further_outputs_may_exist_but_not_be_read(tmp_path: Path) -> None:
    outputs = ["y", "more", "c", "d", "e"]
    node = helper.make_node("BatchNormalization", ["x", *"sbmv"], outputs, name="the_node")
    for read, taken in ((["y"], True), (["y", "more"], False)):
        path = save_model(tmp_path / "m.onnx", [node], {"x": (1, 4, 8, 8)}, read, dict.fromkeys("sbmv", ONES), opset=9)
        if taken:
            assert load_onnx(path).outputs == ("y",)
        else:
            refuse(path, "the_node", "BatchNormalization", "'more'", kind=UnsupportedNode)


def test_undefined_tensor_and_output(tmp_path: Path) -> None:
    refuse(one_node(tmp_path, "Add", more_inputs=("nowhere",)), "the_node", "'nowhere'", "damaged")
    node = helper.make_node("Relu", ["x"], ["z"])
    refuse(save_model(tmp_path / "m.onnx", [node], {"x": (1, 2)}, ["y"]), "'y'")


def test_tensor_written_twice(tmp_path: Path) -> None:
    nodes = [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Sigmoid", ["x"], ["y"])]
    refuse(save_model(tmp_path / "m.onnx", nodes, {"x": (1, 2)}, ["y"]), "'y'", "twice")


def test_tensor_shorter_than_its_shape(tmp_path: Path) -> None:
    path = one_node(tmp_path, "Conv", {"w": np.ones((2, 4, 3, 3), np.float32)})
    model = onnx.load(path)
    model.graph.initializer[0].raw_data = model.graph.initializer[0].raw_data[:-4]
    path.write_bytes(model.SerializeToString())
    refuse(path, "'w'", "(2, 4, 3, 3)", "damaged")


def test_names_that_are_taken(tmp_path: Path) -> None:
    path = one_node(tmp_path, "Conv", {"w": np.ones((2, 4, 3, 3), np.float32)})
    for field, said in (("initializer", "2 initializers are called 'w'"), ("input", "2 inputs are called 'x'")):
        model = onnx.load(path)
        getattr(model.graph, field).append(getattr(model.graph, field)[0])
        (tmp_path / "twice.onnx").write_bytes(model.SerializeToString())
        refuse(tmp_path / "twice.onnx", said)
    node = helper.make_node("Relu", ["a=b"], ["y"])
    refuse(save_model(tmp_path / "m.onnx", [node], {"a=b": (1, 2)}, ["y"]), "'a=b'", "without '='")


def test_extent_below_zero(tmp_path: Path) -> None:
    path = one_node(tmp_path, "Conv", {"w": np.ones((2, 4, 3, 3), np.float32)})
    model = onnx.load(path)
    model.graph.initializer[0].dims[0] = -2
    path.write_bytes(model.SerializeToString())
    refuse(path, "'w'", "(-2, 4, 3, 3)", "negative")


@pytest.mark.parametrize(
    ("op", "attributes", "folded"),
    [
        ("Split", {"num_outputs": 1, "axis": 1}, True),
        ("GatherND", {"batch_dims": -1}, False),
        ("LayerNormalization", {"axis": 1 << 62}, False),
    ],
)
def test_what_ends_the_process_of_onnx_s_own_code_is_refused(
    tmp_path: Path, op: str, attributes: dict[str, Any], folded: bool
) -> None:
    """ONNX 1.23 reads past the end of an array at each: of a node that was refused, as it looks what is behind it; of a
    constant that is folded; and where functions are written out."""
    second = {"Split": [], "GatherND": ["i"], "LayerNormalization": ["c"]}[op]
    constants = {"c": np.ones((4, 2), np.float32), "i": np.ones((2, 1), np.int64)}
    outputs = ["a", "b"] if op == "Split" else ["a"]
    for first, further in (("x", "Relu"), ("x", "NegativeLogLikelihoodLoss"), *([("c", "Relu")] if folded else [])):
        nodes = [
            helper.make_node(op, [first, *second], outputs, name="the_node", **attributes),
            helper.make_node(further, ["x", "l"][: 1 + (further != "Relu")], ["y"]),
        ]
        path = save_model(
            tmp_path / "m.onnx", nodes, {"x": (4, 2)}, ["a", "y"], constants | {"l": np.zeros(4, np.int64)}, opset=18
        )
        refuse(path, "the_node")


FORKS = """
import os, signal, sys, threading, time
import onnx
from kernels.frontend.onnx.reading import native

model = onnx.load(sys.argv[1])
asking = threading.Event()

def ask():
    while True:
        native.with_types(model)
        asking.set()

threading.Thread(target=ask, daemon=True).start()
assert asking.wait(30)
for _ in range(5):
    time.sleep(0.01)
    child = os.fork()
    if not child:
        signal.alarm(30)
        found = native.with_types(model)
        os._exit(0 if found.graph.value_info else 1)
    assert os.waitpid(child, 0)[1] == 0
"""


def test_a_fork_amid_a_call_of_onnx_s_own_code_has_a_process_of_its_own(tmp_path: Path) -> None:
    nodes = [helper.make_node("Relu", [f"x{i}" if i else "x"], [f"x{i + 1}"]) for i in range(200)]
    path = save_model(tmp_path / "m.onnx", nodes, {"x": (4, 2)}, ["x200"])
    subprocess.run([sys.executable, "-W", "ignore", "-c", FORKS, str(path)], check=True, timeout=120)


def test_a_first_output_that_is_left_out(tmp_path: Path) -> None:
    """PyTorch leaves out the first output of an LSTM of which only the state is read."""
    node = helper.make_node("LSTM", ["x", "w", "r"], ["", "y"], name="the_node", hidden_size=3)
    weights = {name: np.ones((1, 12, 3), np.float32) for name in "wr"}
    path = save_model(tmp_path / "m.onnx", [node], {"x": (1, 1, 3)}, ["y"], weights)
    assert load_onnx(path).shapes["y"] == (1, 1, 3)


def test_an_output_that_is_a_constant(tmp_path: Path) -> None:
    nodes = [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Identity", ["c"], ["z"])]
    path = save_model(tmp_path / "m.onnx", nodes, {"x": (1, 2)}, ["y", "z"], {"c": ONES})
    graph = load_onnx(path)
    assert np.array_equal(evaluate(graph, {"x": np.ones((1, 2))})["z"], ONES)
    path = save_model(tmp_path / "m.onnx", nodes, {"x": (1, 2)}, ["y", "z"], {"c": ONES[:0]})
    refuse(path, "node 'z' (Identity): output 'z' of shape (0,) is empty")


@pytest.mark.parametrize(
    ("op", "constants", "attributes"),
    [
        ("Split", {"s": np.array([0, 4])}, {"axis": 1}),
        ("Slice", {"s": np.array([2]), "e": np.array([2]), "a": np.array([1])}, {}),
        ("Pad", {"p": np.array([0, -1, 0, 0, 0, -3, 0, 0])}, {}),
        ("Resize", {"r": ONES[:0], "s": np.float32([1, 1, 0.1, 1])}, {}),
        ("Tile", {"r": np.array([1, 0, 1, 1])}, {}),
        ("Expand", {"s": np.array([0, 1, 1, 1, 1])}, {}),
        ("Gather", {"i": np.zeros(0, np.int64)}, {"axis": 1}),
        ("GatherND", {"i": np.zeros((0, 1), np.int64)}, {}),
        ("Compress", {"c": np.zeros(4, bool)}, {"axis": 1}),
        ("TopK", {"k": np.array([0])}, {"axis": 1}),
        ("MatMul", {"w": np.zeros((8, 0), np.float32)}, {}),
        ("Add", {"w": np.zeros((0, 1, 1, 1, 1), np.float32)}, {}),
    ],
)
@pytest.mark.parametrize("alone", [True, False])
def test_a_result_without_elements(tmp_path: Path, op: str, constants: Any, attributes: Any, alone: bool) -> None:
    """All of these are valid ONNX."""
    outputs = ["y", "z"] if op in ("Split", "TopK") else ["y"]
    nodes = [helper.make_node(op, ["x", *constants], outputs, name="the_node", **attributes)]
    if not alone:
        nodes.append(helper.make_node("Relu", ["x"], ["good"]))
    path = save_model(tmp_path / "m.onnx", nodes, {"x": (1, 4, 8, 8)}, ["y"] if alone else ["good", "y"], constants)
    refuse(path, "the_node")


@pytest.mark.parametrize(
    ("nodes", "name"),
    [
        ([helper.make_node("Gather", ["table", "places"], ["c"], name="the_node")], "the_node"),
        ([helper.make_node("Add", ["column", "row"], ["c"], name="the_node")], "the_node"),
        (
            [helper.make_node("Concat", [f"c{i}"] * 2, [f"c{i + 1}"], axis=0, name=f"n{i}") for i in range(40)],
            "'n7' (Concat)",  # 4 kB, doubled
        ),
        ([helper.make_node("ConstantOfShape", ["shape"], ["c"], name="the_node")], "the_node"),
    ],
)
def test_constants_that_swell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nodes: list[onnx.NodeProto], name: str
) -> None:
    monkeypatch.setattr("kernels.frontend.onnx.context.MAX_COMPUTED_BYTES", 1 << 20)
    constants = {
        "c0": np.ones(1000, np.float32), "table": np.ones((1, 1 << 12), np.float32), "shape": np.array([1 << 40]),
        "places": np.zeros(1 << 20, np.int64), "column": np.ones((30000, 1), np.float32),
        "row": np.ones((1, 30000), np.float32),
    }  # fmt: skip
    more = helper.make_node("Mul", ["x", nodes[-1].output[0]], ["y"])
    path = save_model(tmp_path / "m.onnx", [*nodes, more], {"x": (1, 2)}, ["y"], constants)
    refuse(path, name, "constants that the model computes", "at most 1048576")


class TestExternalData:
    """Weights in files beside the model."""

    @pytest.fixture
    def model(self, tmp_path: Path) -> onnx.ModelProto:
        path = one_node(tmp_path, "Conv", {"w": np.arange(72, dtype=np.float32).reshape(2, 4, 3, 3)})
        return onnx.load(path)

    def save(self, folder: Path, model: onnx.ModelProto, **entries: str) -> Path:
        tensor = model.graph.initializer[0]
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in entries.items():
            tensor.external_data.add(key=key, value=value)
        (folder / "m.onnx").write_bytes(model.SerializeToString())
        return folder / "m.onnx"

    def test_is_read_at_its_offset(self, tmp_path: Path, model: onnx.ModelProto) -> None:
        weight = numpy_helper.to_array(model.graph.initializer[0])
        (tmp_path / "data").mkdir()
        (tmp_path / "data" / "w.bin").write_bytes(b"\0" * 16 + weight.tobytes() + b"tail")
        path = self.save(tmp_path, model, location="data/w.bin", offset="16", length=str(weight.nbytes))
        np.testing.assert_array_equal(load_onnx(path).constants["w"], weight)

    def test_missing(self, tmp_path: Path, model: onnx.ModelProto) -> None:
        refuse(self.save(tmp_path, model, location="w.bin"), "'w'", "w.bin", "put it beside the model")
        for location in ("w\0.bin", "\0", ".", "x" * 5000):
            refuse(self.save(tmp_path, model, location=location), "'w'", "external data")

    def test_too_short(self, tmp_path: Path, model: onnx.ModelProto) -> None:
        (tmp_path / "w.bin").write_bytes(b"\0" * 100)
        refuse(self.save(tmp_path, model, location="w.bin", length="288"), "'w'", "100 of 288 bytes")

    def test_only_what_the_tensor_takes_is_read(self, tmp_path: Path, model: onnx.ModelProto) -> None:
        weight = numpy_helper.to_array(model.graph.initializer[0])
        with (tmp_path / "w.bin").open("wb") as file:
            file.write(weight.tobytes())
            file.truncate(1 << 40)  # sparse: more than any memory
        path = self.save(tmp_path, model, location="w.bin")
        np.testing.assert_array_equal(load_onnx(path).constants["w"], weight)
        refuse(self.save(tmp_path, model, location="w.bin", length="999"), "'w'", "takes 288 bytes", "has 999")

    def test_what_would_be_waited_for(self, tmp_path: Path, model: onnx.ModelProto) -> None:
        os.mkfifo(tmp_path / "w.bin")
        refuse(self.save(tmp_path, model, location="w.bin"), "'w'", "no regular file")

    @pytest.mark.parametrize("escape", ["../w.bin", "absolute", "link", ""])
    def test_stays_in_the_folder(self, tmp_path: Path, model: onnx.ModelProto, escape: str) -> None:
        folder = tmp_path / "model"
        folder.mkdir()
        outside = tmp_path / "w.bin"
        outside.write_bytes(b"\0" * 288)
        (folder / "link").symlink_to(outside)
        location = str(outside) if escape == "absolute" else escape
        refuse(self.save(folder, model, location=location), "'w'", "outside of the folder")


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ([1, 65536, 65536], r"tensor 'x' of shape .* takes 17179869184 bytes in fp32, more than the 2147483648"),
        ([1, 2**31, 2**31], "more than the 2147483648"),
        ([1, 0, 8], "input 'x' is empty: the file fixes its dimension 1 to size 0"),
    ],
)
def test_sizes_that_nothing_can_hold(shape: list[int], message: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=message):
        load_onnx(_relu(tmp_path, shape, ["y"]))


@pytest.mark.parametrize(
    ("operator", "constants", "attributes"),
    [
        ("Expand", {"s": np.array([2**27, 1, 1, 1])}, {}),
        ("Tile", {"s": np.array([1, 1, 1, 2**29])}, {}),
        ("Pad", {"s": np.array([0, 0, 0, 2**29, 0, 0, 0, 0])}, {"mode": "edge"}),
        ("ConvTranspose", {"w": np.ones((4, 4, 1, 1), np.float32)}, {"strides": [2**20, 2**20]}),
        ("ConvTranspose", {"w": np.ones((4, 4, 1, 1), np.float32)}, {"strides": [1, 2**31], "pads": [0, 2**32] * 2}),
        ("ConvTranspose", {"w": np.ones((4, 4, 1, 2), np.float32)},
         {"strides": [1, 2**31], "dilations": [1, 2], "pads": [0, 2**32] * 2}),
    ],
)  # fmt: skip
def test_what_is_too_large_is_told_before_it_is_made(
    operator: str, constants: dict[str, Any], attributes: dict[str, Any], tmp_path: Path
) -> None:
    path = one_node(tmp_path, operator, constants, shape=(1, 4, 1, 8), **attributes)
    tracemalloc.start()
    try:
        with pytest.raises(ModelError, match=r"bytes.*(more than the 2147483648 that|at most 1073741824 are)"):
            load_onnx(path)
        assert tracemalloc.get_traced_memory()[1] < 50e6
    finally:
        tracemalloc.stop()


def test_an_output_that_is_an_input_and_one_that_nobody_writes(tmp_path: Path) -> None:
    assert load_onnx(_relu(tmp_path, [1, 5], ["y", "x"])).outputs == ("y", "x")
    with pytest.raises(ModelError, match="output 'q' is written by no node"):
        load_onnx(_relu(tmp_path, [1, 5], ["q"]))


def _relu(folder: Path, shape: list[int], outputs: list[str]) -> Path:
    ports = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name in ("x", *outputs)]
    node = onnx.helper.make_node("Relu", ["x"], ["y"], name="relu")
    path = folder / "relu.onnx"
    opsets = [onnx.helper.make_opsetid("", 13)]
    model = onnx.helper.make_model(onnx.helper.make_graph([node], "g", ports[:1], ports[1:]), opset_imports=opsets)
    path.write_bytes(model.SerializeToString())
    return path
