"""Functions that a model brings along: random ones that call each other, within branches and loops, with defaults."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from kernels.errors import ModelError
from kernels.frontend.onnx import load_onnx
from kernels.frontend.onnx.reading import native
from kernels.frontend.onnx.rewriting import inside
from kernels.reference import evaluate

from .onnx_models import run_onnxruntime

OPSETS = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
PORT = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])
TURNS = 2
LEAVES = {"LeakyRelu": "alpha", "Elu": "alpha", "ThresholdedRelu": "alpha", "Selu": "gamma", "HardSigmoid": "beta"}


class Drawn:
    """A model of functions, each of which may call those before it; one name may stand for several (overloads)."""

    def __init__(self, rng: np.random.Generator, overloads: bool) -> None:
        self.rng, self.overloads = rng, overloads
        self.functions: list[onnx.FunctionProto] = []
        self.attributes: dict[tuple[str, str], list[str]] = {}
        self.sizes: dict[tuple[str, str], int] = {}
        self.count = 0
        for number in range(int(rng.integers(1, 5))):
            self._add(number)
        self.nodes = self.steps("x", [], 3, "y")

    def fresh(self) -> str:
        self.count += 1
        return f"t{self.count}"

    def _add(self, number: int) -> None:
        """Add a function with attributes of which some have defaults."""
        names = [f"a{k}" for k in range(int(self.rng.integers(1, 4)))]
        defaults = {name: float(self.rng.uniform(0.1, 0.9)) for name in names if self.rng.random() < 0.6}
        nodes = self.steps("in", names, int(self.rng.integers(1, 4)), "out")
        overload = f"v{number}" if self.rng.random() < 0.3 and self.overloads else ""
        name = f"F{number // 2 if overload else number}"
        function = helper.make_function(
            "own", name, ["in"], ["out"], nodes, OPSETS, [each for each in names if each not in defaults],
            [helper.make_attribute(name, value) for name, value in defaults.items()], overload=overload,
        )  # fmt: skip
        self.functions.append(function)
        self.attributes[name, overload] = names
        self.sizes[name, overload] = self.written_out(nodes)

    def written_out(self, nodes: Iterable[onnx.NodeProto]) -> int:
        """Return how many nodes are imported: of functions, branches and loops each as often as it runs."""
        total = 0
        for node in nodes:
            inside = sum(self.written_out(attribute.g.node) for attribute in node.attribute)
            total += (
                1 + self.sizes.get((node.op_type, node.overload), 0) + inside * (TURNS if node.op_type == "Loop" else 1)
            )
        return total

    def steps(self, x: str, known: list[str], count: int, last: str) -> list[onnx.NodeProto]:
        """A chain of leaves, calls, branches and loops from one tensor to another."""
        nodes: list[onnx.NodeProto] = []
        for step in range(count):
            y = last if step == count - 1 else self.fresh()
            nodes += self._step(x, y, known)
            x = y
        return nodes

    def _step(self, x: str, y: str, known: list[str]) -> list[onnx.NodeProto]:
        way = self.rng.random()
        if way < 0.35 or not self.functions:
            op = str(self.rng.choice([*LEAVES]))
            return [self._with(helper.make_node(op, [x], [y]), [LEAVES[op]], known)]
        if way < 0.8:
            function = self.functions[int(self.rng.integers(len(self.functions)))]
            node = helper.make_node(function.name, [x], [y], domain="own", overload=function.overload)
            return [self._with(node, self.attributes[function.name, function.overload], known)]
        return self._branch(x, y, known) if way < 0.9 else self._loop(x, y, known)

    def _with(self, node: onnx.NodeProto, wanted: list[str], known: list[str]) -> onnx.NodeProto:
        """Some attributes as numbers, some as those of the function that the node is in, some left out."""
        for name in wanted:
            way = self.rng.integers(3)
            if way == 0:
                node.attribute.append(helper.make_attribute(name, float(self.rng.uniform(0.1, 0.9))))
            elif way == 1 and known:
                attribute = onnx.AttributeProto(name=name, type=onnx.AttributeProto.FLOAT)
                attribute.ref_attr_name = str(self.rng.choice(known))
                node.attribute.append(attribute)
        return node

    def _branch(self, x: str, y: str, known: list[str]) -> list[onnx.NodeProto]:
        total, zero, condition = self.fresh(), self.fresh(), self.fresh()
        graphs = []
        for _ in range(2):
            out = self.fresh()
            port = helper.make_tensor_value_info(out, TensorProto.FLOAT, [2, 3])
            graphs.append(helper.make_graph(self.steps(x, known, 2, out), self.fresh(), [], [port]))
        return [
            helper.make_node("ReduceSum", [x], [total], keepdims=0),
            helper.make_node("Constant", [], [zero], value_float=0.0),
            helper.make_node("Greater", [total, zero], [condition]),
            helper.make_node("If", [condition], [y], then_branch=graphs[0], else_branch=graphs[1]),
        ]

    def _loop(self, x: str, y: str, known: list[str]) -> list[onnx.NodeProto]:
        turn, condition, state, again, out, turns, yes = (self.fresh() for _ in range(7))
        value = helper.make_tensor_value_info
        inputs = [value(turn, TensorProto.INT64, []), value(condition, TensorProto.BOOL, [])]
        inputs.append(value(state, TensorProto.FLOAT, [2, 3]))
        outputs = [value(again, TensorProto.BOOL, []), value(out, TensorProto.FLOAT, [2, 3])]
        body = [helper.make_node("Identity", [condition], [again]), *self.steps(state, known, 1, out)]
        number = helper.make_tensor("n", TensorProto.INT64, [], [TURNS])
        true = helper.make_tensor("c", TensorProto.BOOL, [], [True])
        return [
            helper.make_node("Constant", [], [turns], value=number),
            helper.make_node("Constant", [], [yes], value=true),
            helper.make_node("Loop", [turns, yes, x], [y], body=helper.make_graph(body, "b", inputs, outputs)),
        ]

    def save(self, path: Path) -> Path:
        return saved(path, self.nodes, self.functions)


def saved(path: Path, nodes: list[onnx.NodeProto], functions: list[onnx.FunctionProto]) -> Path:
    made = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "m", [PORT], [made])
    model = helper.make_model(graph, opset_imports=OPSETS, functions=functions, ir_version=10)
    path.write_bytes(model.SerializeToString())
    return path


def small(seed: Sequence[int], overloads: bool) -> Drawn:
    """Return the first that is drawn which the import does not refuse for its size: each of its nodes inside of graphs
    counts twice there at most, once with its graph."""
    draws = (Drawn(np.random.default_rng([*seed, again]), overloads) for again in count())
    return next(drawn for drawn in draws if 2 * drawn.written_out(drawn.nodes) < inside.MAX_NODES)


@pytest.mark.parametrize("draw", range(16))
def test_functions_are_what_onnxruntime_computes(tmp_path: Path, seed: int, draw: int) -> None:
    """onnxruntime knows no overloads: it is given the same functions under names of their own."""
    path, plain = (small([seed, draw], each).save(tmp_path / f"{each}.onnx") for each in (True, False))
    x = np.random.default_rng(seed).standard_normal((2, 3)).astype(np.float32)
    found, wanted = evaluate(load_onnx(path), {"x": x})["y"], run_onnxruntime(plain, {"x": x})["y"]
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5 * max(1.0, np.abs(wanted).max()))


def test_one_that_calls_itself_is_refused(tmp_path: Path) -> None:
    node = helper.make_node("F", ["in"], ["out"], domain="own")
    function = helper.make_function("own", "F", ["in"], ["out"], [node], OPSETS)
    path = saved(tmp_path / "m.onnx", [helper.make_node("F", ["x"], ["y"], domain="own")], [function])
    with pytest.raises(ModelError, match=r"node '.*' \(F\): its function calls itself"):
        load_onnx(path)


def test_more_calls_than_anything_needs_are_refused(tmp_path: Path) -> None:
    """Each function calls the one before it ten times: 10^9 nodes."""
    functions = [
        helper.make_function("own", "F0", ["in"], ["out"], [helper.make_node("Relu", ["in"], ["out"])], OPSETS)
    ]
    for number in range(1, 10):
        names = ["in", *(f"t{k}" for k in range(9)), "out"]
        nodes = [
            helper.make_node(f"F{number - 1}", [names[k]], [names[k + 1]], domain="own") for k in range(len(names) - 1)
        ]
        functions.append(helper.make_function("own", f"F{number}", ["in"], ["out"], nodes, OPSETS))
    path = saved(tmp_path / "m.onnx", [helper.make_node("F9", ["x"], ["y"], domain="own")], functions)
    with pytest.raises(ModelError, match="come to more than 100000 nodes"):
        load_onnx(path)


def test_an_output_that_is_an_input_or_given_twice(tmp_path: Path) -> None:
    body = [helper.make_node("Neg", ["a"], ["b"])]
    function = helper.make_function("own", "F", ["a", "unused"], ["b", "a", "b"], body, OPSETS)
    nodes = [
        helper.make_node("F", ["x"], ["p", "q", "r"], domain="own"),
        helper.make_node("Sum", ["p", "q", "q", "r"], ["y"]),
    ]
    path = saved(tmp_path / "m.onnx", nodes, [function])
    np.testing.assert_array_equal(evaluate(load_onnx(path), {"x": np.ones((2, 3), np.float32)})["y"], np.zeros((2, 3)))


def test_a_node_that_the_inliner_changes_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a tool of others, and its result another model."""
    inlined: Callable[..., onnx.ModelProto] = native.inlined

    def forgetful(model: onnx.ModelProto, *rest: Any) -> onnx.ModelProto:
        found = inlined(model, *rest)
        for node in found.graph.node:
            if node.op_type == "LeakyRelu":
                del node.attribute[:]
        return found

    nodes = [
        helper.make_node("LeakyRelu", ["x"], ["z"], alpha=0.3),
        helper.make_node("MeanVarianceNormalization", ["z"], ["y"], axes=[1]),
    ]
    path = saved(tmp_path / "m.onnx", nodes, [])
    load_onnx(path)
    monkeypatch.setattr(native, "inlined", forgetful)
    with pytest.raises(ModelError, match=r"node 'z' \(LeakyRelu\): ONNX's inliner changed it"):
        load_onnx(path)
