"""Loop, Scan and If are written out as often as they run; what is not known when a model is read is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from kernels.errors import ModelError, UnsupportedNode
from kernels.frontend.onnx import load_onnx
from kernels.frontend.onnx.rewriting import inside
from kernels.options import Options
from kernels.passes import prepare
from kernels.reference import evaluate

from .onnx_models import assert_agrees, run_onnxruntime, save_model

X = np.linspace(-2, 3, 6, dtype=np.float32).reshape(2, 3)
SHAPES = {"x": (2, 3)}


def graph(nodes: list[Any], inputs: dict[str, int], outputs: list[str]) -> onnx.GraphProto:
    shapes = {kind: None if kind == TensorProto.FLOAT else () for kind in inputs.values()}
    ports = [helper.make_tensor_value_info(name, kind, shapes[kind]) for name, kind in inputs.items()]
    return helper.make_graph(nodes, "inside", ports, [helper.make_empty_tensor_value_info(name) for name in outputs])


def branch(op: str) -> onnx.GraphProto:
    """Reads what is outside of it."""
    return graph([helper.make_node(op, ["x"], ["inner"])], {}, ["inner"])


def choice(condition: str) -> Any:
    return helper.make_node("If", [condition], ["y"], then_branch=branch("Exp"), else_branch=branch("Neg"))


@pytest.mark.parametrize(("holds", "op"), [(True, "exp"), (False, "neg")])
def test_only_the_branch_of_a_constant_condition_is_imported(tmp_path: Path, holds: bool, op: str) -> None:
    path = save_model(tmp_path / "m.onnx", [choice("c")], SHAPES, ["y"], {"c": np.array(holds)})
    (first, *_) = assert_agrees(path, {"x": X}).nodes
    assert first.attributes["expression"][0] == op


@pytest.mark.parametrize("sign", [1, -1])
def test_a_computed_condition_chooses_between_both_branches(tmp_path: Path, sign: int) -> None:
    nodes = [
        helper.make_node("ReduceSum", ["x"], ["sum"], keepdims=0),
        helper.make_node("Greater", ["sum", "zero"], ["c"]),
        choice("c"),
    ]
    path = save_model(tmp_path / "m.onnx", nodes, SHAPES, ["y"], {"zero": np.float32(0)})
    assert_agrees(path, {"x": sign * X})


@pytest.mark.parametrize("axes", [((), (0,)), ((0,), (0, 1)), ((0, 1, 2), ())])
def test_branches_give_one_element_of_either_rank(tmp_path: Path, axes: tuple[tuple[int, ...], ...], seed: int) -> None:
    def one(op: str, at: tuple[int, ...]) -> Any:
        first = helper.make_node(op, ["sum"], ["inner"])
        axes = helper.make_node("Constant", [], ["axes"], value_ints=list(at) or [0])
        more = [axes, helper.make_node("Unsqueeze", ["inner", "axes"], ["wide"])] if at else []
        return graph([first, *more], {}, ["wide" if at else "inner"])

    nodes = [
        helper.make_node("ReduceSum", ["x"], ["sum"], keepdims=0),
        helper.make_node("Greater", ["sum", "zero"], ["c"]),
        helper.make_node("If", ["c"], ["z"], then_branch=one("Exp", axes[0]), else_branch=one("Neg", axes[1])),
        helper.make_node("Add", ["x", "z"], ["y"]),
    ]
    path = save_model(tmp_path / "m.onnx", nodes, {"x": (1, 2, 3)}, ["y"], {"zero": np.float32(0)})
    x = np.random.default_rng(seed).standard_normal((1, 2, 3)).astype(np.float32)
    for sign in (1, -1):
        found, wanted = evaluate(load_onnx(path), {"x": sign * x})["y"], run_onnxruntime(path, {"x": sign * x})["y"]
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_branches_of_a_computed_condition_must_agree(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("ReduceMax", ["x"], ["most"], keepdims=0),
        helper.make_node("Cast", ["most"], ["c"], to=TensorProto.BOOL),
        helper.make_node("If", ["c"], ["y"], then_branch=branch("Exp"), else_branch=branch("Transpose")),
    ]
    path = save_model(tmp_path / "m.onnx", nodes, SHAPES, ["y"])
    with pytest.raises(UnsupportedNode, match="only results of one type that differ along one axis"):
        load_onnx(path)


def loop(turns: str, condition: str = "") -> Any:
    """y = x * 2^turns + sums of the numbers of turns; collects what it has at each turn."""
    nodes = [
        helper.make_node("Cast", ["turn"], ["number"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["state", "two"], ["double"]),
        helper.make_node("Add", ["double", "number"], ["next"]),
        helper.make_node("Less", ["turn", "most"], ["goes_on"]),
        helper.make_node("Identity", ["next"], ["kept"]),
    ]
    body = graph(
        nodes, {"turn": TensorProto.INT64, "given": TensorProto.BOOL, "state": TensorProto.FLOAT},
        ["goes_on", "next", "kept"],
    )  # fmt: skip
    return helper.make_node("Loop", [turns, condition, "x"], ["y", "each"], body=body)


@pytest.mark.parametrize(("turns", "most"), [("five", 99), ("", 2), ("five", 1)])
def test_a_loop_is_written_out_until_its_condition_ends_it(tmp_path: Path, turns: str, most: int) -> None:
    constants = {"five": np.int64(5), "two": np.float32(2), "most": np.int64(most)}
    path = save_model(tmp_path / "m.onnx", [loop(turns)], SHAPES, ["y", "each"], constants)
    found = assert_agrees(path, {"x": X})
    assert found.shapes["each"] == (min(5, most + 1), 2, 3)


def test_the_number_of_a_turn_has_the_rank_that_the_graph_says(tmp_path: Path) -> None:
    """tf2onnx cuts pictures by it."""
    helps = [
        helper.make_node("Add", ["turn", "one"], ["after"]),
        helper.make_node("Slice", ["x", "turn", "after", "axis"], ["part"]),
    ]
    body = graph(helps, {"turn": TensorProto.INT64, "goes_on": TensorProto.BOOL}, ["goes_on", "part"])
    body.input[0].type.tensor_type.shape.dim.add().dim_value = 1
    node = helper.make_node("Loop", ["turns", ""], ["y"], body=body)
    constants = {"turns": np.array(3), "one": np.array([1]), "axis": np.array([1])}
    assert_agrees(save_model(tmp_path / "m.onnx", [node], SHAPES, ["y"], constants), {"x": X})


def test_a_loop_that_would_not_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inside, "MAX_NODES", 100)
    constants = {"two": np.float32(2), "most": np.int64(2**40)}
    path = save_model(tmp_path / "m.onnx", [loop("")], SHAPES, ["y", "each"], constants)
    with pytest.raises(UnsupportedNode, match="more than 100 nodes"):
        load_onnx(path)


def test_a_loop_of_no_nodes_ends_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inside, "MAX_NODES", 100)
    inputs = {"turn": TensorProto.INT64, "on": TensorProto.BOOL, "state": TensorProto.FLOAT}
    node = helper.make_node("Loop", ["turns", "", "x"], ["y"], body=graph([], inputs, ["on", "state"]))
    path = save_model(tmp_path / "m.onnx", [node], SHAPES, ["y"], {"turns": np.int64(10**5)})
    with pytest.raises(UnsupportedNode, match="more than 100 nodes"):
        load_onnx(path)


def test_an_if_that_gives_nothing_is_left_out(tmp_path: Path) -> None:
    dead = helper.make_node("If", ["c"], [""], then_branch=branch("Exp"), else_branch=branch("Neg"))
    nodes = [dead, helper.make_node("Exp", ["x"], ["y"])]
    path = save_model(tmp_path / "m.onnx", nodes, SHAPES, ["y"], {"c": np.array(True)})
    np.testing.assert_allclose(evaluate(load_onnx(path), {"x": X})["y"], np.exp(X), rtol=1e-6)


@pytest.mark.parametrize("location", ["w.bin", "../w.bin"])
def test_what_a_branch_stores_lies_beside_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, location: str
) -> None:
    for name, factor in (("model", 1), ("elsewhere", 100)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "w.bin").write_bytes((factor * X).tobytes())
    tensor = onnx.TensorProto(
        name="w", dims=X.shape, data_type=TensorProto.FLOAT, data_location=TensorProto.EXTERNAL,
        external_data=[onnx.StringStringEntryProto(key="location", value=location)],
    )  # fmt: skip
    inner = graph([helper.make_node("Add", ["x", "w"], ["inner"])], {}, ["inner"])
    inner.initializer.append(tensor)
    node = helper.make_node("If", ["c"], ["y"], then_branch=inner, else_branch=inner)
    path = save_model(tmp_path / "model" / "m.onnx", [node], SHAPES, ["y"], {"c": np.array(True)})
    monkeypatch.chdir(tmp_path / "elsewhere")
    if location != "w.bin":
        with pytest.raises(ModelError, match="lies outside of the folder"):
            load_onnx(path)
    else:
        np.testing.assert_allclose(evaluate(load_onnx(path), {"x": X})["y"], 2 * X)


def test_a_number_of_turns_that_is_computed_is_refused(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("ReduceMax", ["x"], ["m"], keepdims=0),
        helper.make_node("Cast", ["m"], ["n"], to=TensorProto.INT64),
        loop("n"),
    ]
    constants = {"two": np.float32(2), "most": np.int64(9)}
    path = save_model(tmp_path / "m.onnx", nodes, SHAPES, ["y", "each"], constants)
    with pytest.raises(UnsupportedNode, match=r"its number of turns .* depends on the model's input"):
        load_onnx(path)


@pytest.mark.parametrize(("backwards", "axis"), [(0, 0), (1, 1)])
def test_scan_goes_along_an_axis_in_either_direction(tmp_path: Path, backwards: int, axis: int) -> None:
    nodes = [helper.make_node("Add", ["sum", "part"], ["next"]), helper.make_node("Tanh", ["next"], ["kept"])]
    body = graph(nodes, {"sum": TensorProto.FLOAT, "part": TensorProto.FLOAT}, ["next", "kept"])
    scan = helper.make_node(
        "Scan", ["start", "x"], ["last", "y"], body=body, num_scan_inputs=1, scan_input_axes=[axis],
        scan_input_directions=[backwards], scan_output_axes=[axis], scan_output_directions=[backwards],
    )  # fmt: skip
    constants = {"start": np.ones(3 if axis == 0 else 2, np.float32)}
    assert_agrees(save_model(tmp_path / "m.onnx", [scan], SHAPES, ["last", "y"], constants), {"x": X})


def test_graphs_inside_of_graphs_read_what_is_outside(tmp_path: Path) -> None:
    inner = helper.make_node("If", ["c"], ["chosen"], then_branch=branch("Exp"), else_branch=branch("Neg"))
    outer = graph([inner, helper.make_node("Abs", ["chosen"], ["done"])], {}, ["done"])
    node = helper.make_node("If", ["c"], ["y"], then_branch=outer, else_branch=outer)
    assert_agrees(save_model(tmp_path / "m.onnx", [node], SHAPES, ["y"], {"c": np.array(False)}), {"x": X})


def test_what_is_damaged_inside_names_the_node(tmp_path: Path) -> None:
    broken = graph([helper.make_node("Exp", ["nowhere"], ["inner"])], {}, ["inner"])
    node = helper.make_node("If", ["c"], ["y"], then_branch=broken, else_branch=branch("Neg"), name="choice")
    path = save_model(tmp_path / "m.onnx", [node], SHAPES, ["y"], {"c": np.array(True)})
    with pytest.raises(ModelError, match=r"'choice'.*'nowhere'.*is defined nowhere before"):
        load_onnx(path)


def test_nodes_out_of_order_are_told_so(tmp_path: Path) -> None:
    nodes = [helper.make_node("Exp", ["later"], ["y"]), helper.make_node("Neg", ["x"], ["later"])]
    with pytest.raises(ModelError, match=r"'later'.* is written by a later node; sort the nodes"):
        load_onnx(save_model(tmp_path / "m.onnx", nodes, SHAPES, ["y"]))


def test_what_is_refused_hides_a_branch_that_reads_it(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Unique", ["data"], ["found"], name="first", sorted=0),
        helper.make_node("Cast", ["found"], ["x"], to=TensorProto.FLOAT),
        helper.make_node("If", ["c"], ["y"], then_branch=branch("Exp"), else_branch=branch("Neg"), name="choice"),
    ]
    path = save_model(tmp_path / "m.onnx", nodes, {"data": (2, 3)}, ["y"], {"c": np.array(True)})
    with pytest.raises(UnsupportedNode) as caught:
        load_onnx(path)
    assert [each.node for each in caught.value.obstacles] == ["first"]


def test_a_normalisation_of_which_a_branch_reads_a_part_stays_spelt_out(tmp_path: Path) -> None:
    reads = graph([helper.make_node("Exp", ["mean"], ["inner"])], {}, ["inner"])
    nodes = [
        helper.make_node("Mul", ["x", "x"], ["square"]),
        helper.make_node("Reshape", ["square", "shape"], ["wide"]),
        helper.make_node("Pad", ["wide", "pads"], ["padded"]),
        helper.make_node("AveragePool", ["padded"], ["pooled"], kernel_shape=[3, 1, 1]),
        helper.make_node("Squeeze", ["pooled", "axes"], ["mean"]),
        helper.make_node("Mul", ["mean", "alpha"], ["scaled"]),
        helper.make_node("Add", ["scaled", "bias"], ["base"]),
        helper.make_node("Pow", ["base", "beta"], ["divisor"]),
        helper.make_node("Div", ["x", "divisor"], ["y"]),
    ]
    numbers = {"alpha": 0.5, "beta": 0.75, "bias": 1.0}
    constants = {
        "shape": np.array([1, 1, 3, 1, 2]), "pads": np.array([0, 0, 1, 0, 0] * 2), "axes": np.array([1]),
        "c": np.array(True), **{name: np.float32(value) for name, value in numbers.items()},
    }  # fmt: skip
    x = {"x": X.reshape(1, 3, 1, 2)}
    whole = assert_agrees(save_model(tmp_path / "m.onnx", nodes, {"x": (1, 3, 1, 2)}, ["y"], constants), x)
    assert [node.op for node in prepare(whole, Options("opencl")).nodes] == ["lrn"]
    nodes.append(helper.make_node("If", ["c"], ["z"], then_branch=reads, else_branch=reads))
    assert_agrees(save_model(tmp_path / "m.onnx", nodes, {"x": (1, 3, 1, 2)}, ["y", "z"], constants), x)
