"""Workloads by name or file, and their inputs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from kernels.errors import CompileError, InputError, OptionError
from kernels.frontend.load import load_inputs, load_workload, random_inputs, sizes_of
from kernels.frontend.networks import NETWORKS
from kernels.frontend.networks.export import to_onnx
from kernels.frontend.onnx import load_onnx
from kernels.frontend.tokens import read_texts
from kernels.ir.graph import Graph
from kernels.ir.types import to_numpy
from kernels.reference import evaluate

from .onnx_models import save_model


@pytest.fixture
def lenet() -> Graph:
    return NETWORKS["lenet"](1)


@pytest.fixture
def sum_of_two(tmp_path: Path) -> Graph:
    node = helper.make_node("Add", ["a", "b"], ["y"])
    return load_onnx(save_model(tmp_path / "m.onnx", [node], {"a": (2, 3), "b": (2, 3)}, ["y"]))


def test_named_network_and_file_mean_the_same(tmp_path: Path) -> None:
    built = load_workload(network="lenet", onnx=None, seed=4, batch=2)
    to_onnx(built, tmp_path / "lenet.onnx")
    read = load_workload(network=None, onnx=tmp_path / "lenet.onnx", seed=9)
    x = random_inputs(built, 1)
    np.testing.assert_allclose(evaluate(read, x)["prob"], evaluate(built, x)["prob"], atol=1e-12)


def test_unknown_network_names_the_nearest_and_all() -> None:
    with pytest.raises(OptionError, match=r"'squeezenet1_0' .*did you mean 'squeezenet_v1_0'") as caught:
        load_workload(network="squeezenet1_0", onnx=None, seed=1)
    assert all(name in str(caught.value) for name in NETWORKS)
    with pytest.raises(OptionError, match="known are alexnet") as caught:
        load_workload(network="zzzz", onnx=None, seed=1)
    assert "did you mean" not in str(caught.value)


@pytest.mark.parametrize(("network", "onnx"), [(None, None), ("lenet", Path("m.onnx"))])
def test_exactly_one_workload(network: str | None, onnx: Path | None) -> None:
    with pytest.raises(OptionError, match="exactly one"):
        load_workload(network=network, onnx=onnx, seed=1)


@pytest.mark.parametrize("batch", [0, -1])
def test_batch_is_positive(batch: int) -> None:
    with pytest.raises(OptionError, match=f"batch {batch}"):
        load_workload(network="lenet", onnx=None, seed=1, batch=batch)


def test_random_inputs_are_seeded(sum_of_two: Graph) -> None:
    one, again, other = (random_inputs(sum_of_two, seed) for seed in (1, 1, 2))
    assert one["a"].dtype == np.float32
    np.testing.assert_array_equal(one["a"], again["a"])
    assert not np.array_equal(one["a"], other["a"])
    assert not np.array_equal(one["a"], one["b"])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_npy_is_read_as_fp32(tmp_path: Path, lenet: Graph, dtype: type) -> None:
    x = np.random.default_rng(1).standard_normal((1, 1, 28, 28)).astype(dtype)
    np.save(tmp_path / "x.npy", x)
    read = load_inputs(lenet, tmp_path / "x.npy")["data"]
    assert read.dtype == np.float32
    np.testing.assert_array_equal(read, x.astype(np.float32))


def test_npz_gives_several_inputs(tmp_path: Path, sum_of_two: Graph) -> None:
    np.savez(tmp_path / "x.npz", a=np.ones((2, 3)), b=2 * np.ones((2, 3)))
    inputs = load_inputs(sum_of_two, tmp_path / "x.npz")
    np.testing.assert_array_equal(evaluate(sum_of_two, inputs)["y"], 3 * np.ones((2, 3)))
    np.savez(tmp_path / "y.npz", a=np.ones((2, 3)))
    with pytest.raises(InputError, match=r"'b'.* missing"):
        load_inputs(sum_of_two, tmp_path / "y.npz")
    np.save(tmp_path / "x.npy", np.ones((2, 3)))
    with pytest.raises(InputError, match=r"several inputs.*'a' \(2, 3\), 'b' \(2, 3\)"):
        load_inputs(sum_of_two, tmp_path / "x.npy")


@pytest.mark.parametrize(
    ("array", "given"),
    [
        (np.ones((1, 28, 28), np.float32), r"\(1, 28, 28\) float32"),
        (np.ones((1, 1, 28, 28), np.uint8), r"\(1, 1, 28, 28\) uint8"),
        (np.ones((1, 1, 28, 28), np.complex64), r"\(1, 1, 28, 28\) complex64"),
    ],
)
def test_input_that_does_not_fit(tmp_path: Path, lenet: Graph, array: np.ndarray, given: str) -> None:
    np.save(tmp_path / "x.npy", array)
    told = rf"x\.npy: input 'data' of lenet: expected \(1, 1, 28, 28\) float32, given {given}"
    with pytest.raises(InputError, match=told):
        load_inputs(lenet, tmp_path / "x.npy")
    with pytest.raises(InputError, match=given):
        evaluate(lenet, {"data": array})


@pytest.fixture
def tokens(tmp_path: Path) -> Graph:
    """Rows of a table of 7, of the tokens that are not masked."""
    kinds = (("t", TensorProto.INT64, [2, 5]), ("m", TensorProto.BOOL, [2, 5, 1]))
    ports = [helper.make_tensor_value_info(*kind) for kind in kinds]
    nodes = [helper.make_node("Gather", ["w", "t"], ["g"]), helper.make_node("Where", ["m", "g", "z"], ["y"])]
    made = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 5, 3])]
    stored = {"w": np.arange(21, dtype=np.float32).reshape(7, 3), "z": np.float32(-1)}
    weights = [numpy_helper.from_array(np.asarray(array), name) for name, array in stored.items()]
    model = helper.make_model(
        helper.make_graph(nodes, "t", ports, made, weights), opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    )
    (tmp_path / "t.onnx").write_bytes(model.SerializeToString())
    return load_onnx(tmp_path / "t.onnx")


def test_tokens_are_drawn_and_read_as_whole_numbers(tmp_path: Path, tokens: Graph) -> None:
    drawn = random_inputs(tokens, 1)
    assert {*np.concatenate([random_inputs(tokens, seed)["t"].ravel() for seed in range(20)])} == {*range(7)}
    assert {*drawn["m"].ravel()} == {0, 1}
    assert [drawn[name].dtype for name in "tm"] == [to_numpy(tokens.types[name]) for name in "tm"]
    for types in ((np.int64, np.bool_), (np.uint8, np.int32), (np.float64, np.float32)):
        given = {name: array.astype(kind) for (name, array), kind in zip(drawn.items(), types, strict=True)}
        np.savez(tmp_path / "x.npz", **given)
        read = load_inputs(tokens, tmp_path / "x.npz")
        for name, array in drawn.items():
            np.testing.assert_array_equal(read[name], array)
            assert read[name].dtype == array.dtype


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (np.full((2, 5), 2.5), r"input 't' holds 2\.5; it takes whole numbers"),
        (np.full((2, 5), np.nan), "input 't' holds nan; it takes whole numbers"),
        (np.full((2, 5), 2.0**63), "input 't' holds 9.22337e[+]18; it takes int64"),  # int64 as a float says it ends
        (np.full((2, 5), 1 << 63, np.uint64), "input 't' holds 9.22337e[+]18; it takes int64, -9223372036854775808 to"),
        (np.full((2, 5), 7), "input 't' holds 7; it chooses from a table of 7 rows"),
        (np.full((2, 5), -8.0), "input 't' holds -8; it chooses"),
        (np.ones((2, 5), complex), r"expected \(2, 5\) whole numbers, given \(2, 5\) complex128"),
    ],
)
def test_whole_numbers_that_cannot_be_taken(tmp_path: Path, tokens: Graph, bad: np.ndarray, said: str) -> None:
    np.savez(tmp_path / "x.npz", t=bad, m=np.ones((2, 5, 1), bool))
    with pytest.raises(InputError, match=said):
        load_inputs(tokens, tmp_path / "x.npz")


def test_more_than_fp32_holds(tmp_path: Path, lenet: Graph) -> None:
    np.save(tmp_path / "x.npy", np.full((1, 1, 28, 28), 1e300))
    with pytest.raises(InputError, match=r"input 'data' holds 1e\+300, more than fp32 holds"):
        load_inputs(lenet, tmp_path / "x.npy")


def test_unknown_and_missing_inputs(lenet: Graph) -> None:
    x = random_inputs(lenet, 1)["data"]
    with pytest.raises(InputError, match=r"no input 'dta'; its inputs are 'data' \(1, 1, 28, 28\)"):
        evaluate(lenet, {"dta": x})
    with pytest.raises(InputError, match="'data' of lenet is missing"):
        evaluate(lenet, {})


@pytest.mark.parametrize("content", [b"", b"no array", b"\x93NUMPY\x01\x00v\x00", b"PK\x03\x04broken"])
def test_input_file_that_is_none(tmp_path: Path, lenet: Graph, content: bytes) -> None:
    (tmp_path / "x.npy").write_bytes(content)
    with pytest.raises(InputError, match=r"x\.npy.*numpy\.save") as told:
        load_inputs(lenet, tmp_path / "x.npy")
    assert "allow_pickle" not in str(told.value)


def test_absent_and_pickled_input_files(tmp_path: Path, lenet: Graph) -> None:
    with pytest.raises(InputError, match=r"absent\.npy"):
        load_inputs(lenet, tmp_path / "absent.npy")
    np.save(tmp_path / "x.npy", np.array([{"a": 1}]), allow_pickle=True)
    with pytest.raises(InputError, match="pickle"):
        load_inputs(lenet, tmp_path / "x.npy")


def test_a_network_takes_the_sizes_that_it_has() -> None:
    assert sizes_of("autoencoder_784") == {"hidden": (500, 250, 10)} and sizes_of("lenet") == {}
    graph = load_workload(network="autoencoder_784", onnx=None, seed=None, sizes={"hidden": (7, 5)})
    assert graph.shapes["encode1"] == (1, 7) and graph.shapes[graph.outputs[0]] == (1, 5)
    graph = load_workload(network="resnet18", onnx=None, seed=None, batch=2, sizes={"size": 64})
    assert graph.shapes[graph.inputs[0]] == (2, 3, 64, 64)


@pytest.mark.parametrize(
    ("network", "sizes", "told"),
    [
        ("lenet", {"size": 7}, "network lenet has no parameter 'size'; it has: none"),
        ("vgg16", {"sizes": 7}, "it has: size (224)"),
        ("vgg16", {"size": (7,)}, "size is a number, such as 224"),
        ("autoencoder_784", {"hidden": 7}, "hidden is a list of numbers, such as (500, 250, 10)"),
        ("autoencoder_784", {"hidden": (7, 0)}, "every number is 1 or more"),
        ("googlenet", {"size": 1}, "does not fit into (1, 1)"),
    ],
)
def test_sizes_that_a_network_has_not_are_refused(network: str, sizes: dict[str, Any], told: str) -> None:
    with pytest.raises(CompileError, match=re.escape(told)):
        load_workload(network=network, onnx=None, seed=None, sizes=sizes)


ODD_TOKENS: list[tuple[Any, str]] = [
    ("1_0 2", "'1_0' is none"),
    ("\u0661", "is none"),
    ("1 99999999999999999999", "is none"),
    ("\udcff", "UTF-8 at byte"),
    (np.ones((2, 2, 2), int), r"shape \(2, 2, 2\)"),
    (np.array([1, 2**64 - 1], np.uint64), "token 18446744073709551615"),
    (np.ones(2, bool), "type bool"),
    ({"tokens": np.ones(2, int)}, "arrays 'tokens'"),
]


@pytest.mark.parametrize(("content", "told"), ODD_TOKENS)
def test_what_is_no_token_is_told_in_words(tmp_path: Path, content: Any, told: str) -> None:
    path = tmp_path / ("t.txt" if isinstance(content, str) else "t.npy")
    if isinstance(content, str):
        path.write_bytes(content.encode(errors="surrogateescape"))
    else:
        with path.open("wb") as file:
            np.savez(file, **content) if isinstance(content, dict) else np.save(file, content)
    with pytest.raises(InputError, match=rf"t\.(txt|npy): .*{told}.*; give"):
        read_texts(path)


def test_a_mark_of_utf_8_is_no_token(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("\ufeff3 5")
    assert read_texts(tmp_path / "t.txt").tolist() == [[3, 5]]
