"""Single operators, chains and pairs with random ranks, shapes, attributes and broadcasts, against onnxruntime.

python -m tests.contract.kernels.onnx_fuzz --minutes 10 --backends cpu,opencl,vulkan [--seed N] [--raw FILE]

What onnxruntime refuses or does not know is left out; what we refuse is counted by operator, and is no fault.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
import onnxruntime

from .onnx_cases import Case, Found, agent_says, imported
from .onnx_draws import OPERATORS, PAIRS, SINCE, STORED, TWO_RESULTS, Chain, ints, normal

OPSET = 20
TOGETHER = 24

Array = np.ndarray[Any, Any]
Arrays = dict[str, Array]


_UNARY = ("Abs", "Clip", "Erf", "HardSigmoid", "HardSwish", "LeakyRelu", "Mish", "Neg", "Relu", "Sigmoid", "Softplus",
          "Tanh")  # fmt: skip
_CHAINS, _PAIRS = 0.2, 0.2
"""The shares of cases that are a layer and a chain behind it, and a pair that hands places on."""


def single(rng: np.random.Generator, op: str) -> tuple[onnx.GraphProto, Arrays]:
    """One node, and what it is given."""
    inputs, attributes = OPERATORS[op](rng)
    names = [f"i{k}" if array.size or k == 0 else "" for k, array in enumerate(inputs)]
    given = {name: np.asarray(array) for name, array in zip(names, inputs, strict=True) if name}
    stored = {name for name in list(given)[1:] if op in STORED or rng.random() < 0.4}
    if len(given) > 1 and op not in STORED and stored != {*given} - {"i0"} and rng.random() < 0.15:
        stored.add("i0")
    weights = {name: given.pop(name) for name in sorted(stored)}
    outputs = ["y", "z"] if op in TWO_RESULTS else ["y"]
    return _graph([onnx.helper.make_node(op.split()[0], names, outputs, **attributes)], given, weights, outputs), given


def folded(rng: np.random.Generator, op: str) -> tuple[onnx.GraphProto, Arrays]:
    """One node of constants alone, whose result is added to the input: what the import itself computes."""
    inputs, attributes = OPERATORS[op](rng)
    names = [f"i{k}" if array.size or k == 0 else "" for k, array in enumerate(inputs)]
    weights = {name: np.asarray(array) for name, array in zip(names, inputs, strict=True) if name}
    node = onnx.helper.make_node
    nodes = [
        node(op.split()[0], names, ["made", "z"] if op in TWO_RESULTS else ["made"], **attributes),
        node("Cast", ["made"], ["number"], to=onnx.TensorProto.FLOAT),
        node("Add", ["number", "x"], ["y"]),
    ]
    given = {"x": np.asarray(rng.standard_normal(), np.float32)}
    return _graph(nodes, given, weights, ["y"]), given


def chain(rng: np.random.Generator) -> tuple[onnx.GraphProto, Arrays]:
    """A convolution, and operations of each element behind it, by numbers, channels, pixels and what came before."""
    n, c, k, h, w = (int(extent) for extent in rng.integers(1, (3, 20, 36, 9, 9)))
    x, weights = normal(rng, n, c, h, w), {"w": normal(rng, k, c, 1, 1)}
    nodes, means = [onnx.helper.make_node("Conv", ["x", "w"], ["t0"])], ["gate", "plane"]
    for index in range(int(rng.integers(1, 9))):
        a, to = f"t{int(rng.integers(max(0, index - 1), index + 1))}", f"t{index + 1}"
        if rng.random() < 0.5:
            nodes.append(onnx.helper.make_node(str(rng.choice(_UNARY)), [a], [to]))
            continue
        kind, b = str(rng.choice(["before", "number", "channels", "pixels", *means])), f"c{index}"
        if kind == "before":
            b = f"t{int(rng.integers(0, index + 1))}"
        elif kind == "gate":
            nodes.append(onnx.helper.make_node("GlobalAveragePool", [a], [b]))
        elif kind == "plane":
            weights[f"{b}.axis"] = ints(1)
            nodes.append(onnx.helper.make_node("ReduceMean", [a, f"{b}.axis"], [b], keepdims=1))
        else:
            shapes = {
                "number": ((), (1,), (1, 1, 1, 1)),
                "channels": ((k, 1, 1), (1, k, 1, 1)),
                "pixels": ((1, 1, h, w), (h, w)),
            }
            weights[b] = normal(rng, *shapes[kind][int(rng.integers(len(shapes[kind])))])
        order = [a, b] if rng.random() < 0.7 else [b, a]
        op = str(rng.choice(["Add", "Max", "Mul", "Sub"]))
        if op == "Sub" and kind in ("gate", "plane"):
            means = []  # the mean of what its mean was taken from is nothing but rounding
        nodes.append(onnx.helper.make_node(op, order, [to]))
    last = nodes[-1].output[0]
    outputs = [last, *({f"t{int(rng.integers(1, 3))}"} & {name for node in nodes for name in node.output} - {last})]
    return _graph(nodes, {"x": x}, weights, outputs), {"x": x}


def pair(rng: np.random.Generator, name: str) -> tuple[onnx.GraphProto, Arrays]:
    """Two operators of which the second takes places, numbers or sizes from the first."""
    to = Chain(rng)
    PAIRS[name](to)
    return _graph(to.nodes, to.given, to.weights, to.outputs), to.given


def _graph(nodes: list[onnx.NodeProto], given: Arrays, weights: Arrays, outputs: Sequence[str]) -> onnx.GraphProto:
    helper = onnx.helper
    ports = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in given.items()
    ]
    stored = [onnx.numpy_helper.from_array(array, name) for name, array in weights.items()]
    made = [helper.make_empty_tensor_value_info(name) for name in outputs]
    return helper.make_graph(nodes, "one", ports, made, stored)


def drawn(rng: np.random.Generator, number: int) -> Case | None:
    """A case with the outputs that onnxruntime gives; None where it refuses, or they are not finite."""
    share = rng.random()
    if share < _CHAINS:
        return judged(f"chain.{number}", *chain(rng))
    if share < _CHAINS + _PAIRS:
        name = str(rng.choice(list(PAIRS)))
        return judged(f"{name}.{number}", *pair(rng, name))
    op = str(rng.choice(list(OPERATORS)))
    return judged(f"{op}.{number}", *single(rng, op))


def judged(name: str, graph: onnx.GraphProto, given: Arrays) -> Case | None:
    """A case as `drawn` gives it, of this graph and these inputs."""
    opset = max(SINCE.get(node.op_type, OPSET) for node in graph.node)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)], ir_version=10)
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        found = session.run(None, given)
    except Exception:  # whatever it has against the case
        return None
    if any(not y.size or not np.isfinite(np.asarray(y, np.float64)).all() for y in found):
        return None
    return Case(name, model, given, {port.name: y for port, y in zip(graph.output, found, strict=True)})


def cases(rng: np.random.Generator, first: int, count: int, path: Path) -> list[Found]:
    """Draw `count` cases that the import takes."""
    found: list[Found] = []
    while len(found) < count:
        case = drawn(rng, first + len(found))
        if case is not None:
            found.append(imported(case, path))
    return found


def text_of(case: Case) -> str:
    return str(onnx.printer.to_text(case.model.graph))[:900]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--cases", type=int, default=10**9, help="at most so many")
    parser.add_argument("--backends", default="cpu,opencl,vulkan")
    parser.add_argument("--together", type=int, default=TOGETHER, help="cases of one plan")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--raw", type=Path, help="a JSON file that is kept up to date with what was counted")
    options = parser.parse_args()
    rng, end, number = np.random.default_rng(options.seed), time.monotonic() + 60 * options.minutes, 0
    counts, refused = Counter[str](), Counter[str]()
    print(f"seed {options.seed}", flush=True)
    with suppress(KeyboardInterrupt):  # what was found until then is shown
        while time.monotonic() < end and number < options.cases:
            with TemporaryDirectory() as folder:
                found = cases(rng, number, options.together, Path(folder) / "m.onnx")
                number += options.together
                _count(found, counts, refused)
                good = [one for one in found if one.graphs and not one.wrong]
                for api in options.backends.split(","):
                    _try(good, Path(folder), api, counts)
            if options.raw:
                kept = {"seed": options.seed, "opset": OPSET, "counts": counts, "refused": refused}
                options.raw.write_text(json.dumps(kept, indent=1) + "\n")
    print("\n".join(f"{count:6} {what}" for what, count in counts.items()))
    print("\n".join(f"{count:6} refused: {why}" for why, count in refused.most_common(60)))


def _try(good: Sequence[Found], folder: Path, api: str, counts: Counter[str]) -> None:
    wrong = agent_says(good, folder, api)
    counts[f"right on {api}"] += len(good) - len(wrong)
    counts[f"WRONG on {api}"] += len(wrong)
    for one in good:
        if one.case.name in wrong:
            print(f"WRONG on {api}: {wrong[one.case.name][:300]} {text_of(one.case)}", flush=True)


def _count(found: Sequence[Found], counts: Counter[str], refused: Counter[str]) -> None:
    for one in found:
        if one.wrong:
            counts["WRONG by the reference"] += 1
            print(f"WRONG {one.wrong} {text_of(one.case)}", flush=True)
        elif one.graphs:
            counts["taken"] += 1
        else:
            counts["refused"] += 1
            refused[f"{one.case.operator}: {one.refusals[-1].split(': ', 1)[-1]}"[:140]] += 1


if __name__ == "__main__":
    main()
