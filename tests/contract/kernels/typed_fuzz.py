"""Small graphs of whole numbers of every width and of floats, on all backends, against onnxruntime, to the last bit.

python -m tests.contract.kernels.typed_fuzz --minutes 10 --backends cpu,opencl,vulkan [--cases N] [--seed N]

Left out is what onnxruntime does not define: divisors of 0, shifts by all bits, floats beyond a narrow type. UINT64 is
held in 64 signed bits, so that it is only moved, and computed bit by bit.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx

from .onnx_cases import Case, Found, agent_says, imported
from .onnx_fuzz import judged, text_of

TOGETHER = 24
Array = np.ndarray[Any, Any]
WHOLE = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
WIDE, ANY = ("int32", "int64"), (*WHOLE, "float32", "bool")
MIXED = (*WIDE, "float32")


@dataclass
class Draw:
    """A graph that is drawn node by node; `known` are its tensors, each with its type and shape."""

    rng: np.random.Generator
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    given: dict[str, Array] = field(default_factory=dict)
    weights: dict[str, Array] = field(default_factory=dict)
    known: dict[str, tuple[str, tuple[int, ...]]] = field(default_factory=dict)

    def pick(self, kinds: Sequence[str]) -> str:
        """A tensor of one of these types, which may be a new input."""
        fitting = [name for name, (kind, _) in self.known.items() if kind in kinds]
        if fitting and self.rng.random() < 0.8:
            return str(self.rng.choice(fitting[-4:]))
        shape = tuple(self.rng.integers(1, 5, int(self.rng.integers(0, 5))).tolist())
        return self.input(str(self.rng.choice(kinds)), shape)

    def input(self, kind: str, shape: Sequence[int]) -> str:
        name = f"i{len(self.given)}"
        self.given[name] = numbers(self.rng, kind, *shape)
        self.known[name] = kind, tuple(shape)
        return name

    def like(self, name: str, array: Array | None = None) -> str:
        """Another operand of a tensor's type, which broadcasts to it: a tensor, an input or a weight."""
        kind, shape = self.known[name]
        same = [other for other, known in self.known.items() if known == (kind, shape)]
        if array is None and self.rng.random() < 0.4:
            return str(self.rng.choice(same))
        own = tuple(1 if self.rng.random() < 0.3 else size for size in shape)
        if array is None and self.rng.random() < 0.5:
            return self.input(kind, own)
        found = numbers(self.rng, kind, *own) if array is None else array.astype(kind)
        return self.weight(found)

    def weight(self, array: Array) -> str:
        name = f"w{len(self.weights)}"
        self.weights[name] = array
        return name

    def add(self, op: str, inputs: Sequence[str], kind: str, shape: Sequence[int], **attributes: Any) -> str:
        name = f"t{len(self.nodes)}"
        self.nodes.append(onnx.helper.make_node(op, inputs, [name], **attributes))
        self.known[name] = kind, tuple(shape)
        return name

    def same(self, op: str, inputs: Sequence[str], **attributes: Any) -> str:
        return self.add(op, inputs, *self.known[inputs[0]], **attributes)


def numbers(rng: np.random.Generator, kind: str, *shape: int) -> Array:
    """Small ones, those at the ends of the type's range, and any."""
    if kind == "bool":
        return np.asarray(rng.integers(0, 2, shape), bool)
    if kind == "float32":
        return np.asarray(np.round(rng.normal(0, 50, shape) * 4) / 4, np.float32)
    limits = np.iinfo(kind)
    high = limits.max if kind != "uint64" else 2**63 - 1
    ends = rng.choice(np.array([limits.min, limits.min + 1, high, high - 1, 0, 1], kind), shape)
    anywhere = rng.integers(limits.min, high, shape, kind)
    small = np.asarray(rng.integers(-9 if limits.min else 0, 10, shape), kind)
    return np.asarray(np.choose(rng.integers(0, 4, shape), [small, small, ends, anywhere]), kind)


def _binary(d: Draw) -> None:
    a = d.pick(MIXED)
    d.same(str(d.rng.choice(["Add", "Sub", "Mul"])), [a, d.like(a)])


def _divide(d: Draw) -> None:
    a = d.pick(WIDE)
    by = d.rng.choice([-7, -3, -2, 1, 2, 3, 5, 16, 1000], d.known[a][1][-1:] or ())
    op = str(d.rng.choice(["Div", "Mod"]))
    d.same(op, [a, d.like(a, np.asarray(by))])


def _extreme(d: Draw) -> None:
    """INT64 is left out, here and in Clip: onnxruntime takes what lies from 2^31 to 2^32 for negative."""
    a = d.pick(("int32", "uint32", "float32"))
    d.same(str(d.rng.choice(["Max", "Min"])), [a, d.like(a)])


def _compare(d: Draw) -> None:
    a = d.pick(MIXED)
    op = str(d.rng.choice(["Less", "Greater", "Equal", "LessOrEqual", "GreaterOrEqual"]))
    d.add(op, [a, d.like(a)], "bool", d.known[a][1])


def _logical(d: Draw) -> None:
    a = d.pick(("bool",))
    d.same(str(d.rng.choice(["And", "Or", "Xor"])), [a, d.like(a)])


def _where(d: Draw) -> None:
    a = d.pick((*MIXED, "uint8"))
    _, shape = d.known[a]
    conditions = [name for name, known in d.known.items() if known == ("bool", shape)]
    c = conditions[-1] if conditions else d.input("bool", shape)
    d.add("Where", [c, a, d.like(a)], *d.known[a])


def _cast(d: Draw) -> None:
    """Floats go to what is wide enough, and unsigned 64 bits to no float."""
    a = d.pick(ANY)
    kind = d.known[a][0]
    others = MIXED if kind == "float32" else WHOLE if kind == "uint64" else ANY
    to = str(d.rng.choice(others))
    code = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(to))
    d.add("Cast", [a], to, d.known[a][1], to=code)


def _bitwise(d: Draw) -> None:
    a = d.pick(WHOLE)
    if d.rng.random() < 0.2:
        d.same("BitwiseNot", [a])
    else:
        d.same(str(d.rng.choice(["BitwiseAnd", "BitwiseOr", "BitwiseXor"])), [a, d.like(a)])


def _shift(d: Draw) -> None:
    a = d.pick(("uint8", "uint32"))
    kind, shape = d.known[a]
    by = d.rng.integers(0, 8 * np.dtype(kind).itemsize, shape[-1:])
    d.same("BitShift", [a, d.like(a, by)], direction=str(d.rng.choice(["LEFT", "RIGHT"])))


def _unary(d: Draw) -> None:
    a = d.pick((*MIXED, "int8"))
    wrong_there = d.known[a][0] == "int64"  # as in `_extreme`: onnxruntime's sign of 2^31 is -1
    d.same(str(d.rng.choice(["Abs", "Neg", *([] if wrong_there else ["Sign"])])), [a])


def _clip(d: Draw) -> None:
    a = d.pick(("int32", "int8", "uint8"))
    low, high = sorted(numbers(d.rng, d.known[a][0], 2).tolist())
    d.same("Clip", [a, *(d.like(a, np.asarray(each)) for each in (low, high))])


def _ranked(d: Draw, kinds: Sequence[str]) -> tuple[str, str, tuple[int, ...], int]:
    """A tensor of at least one axis, and one of these."""
    a = d.pick(kinds)
    if not d.known[a][1]:
        a = d.input(d.known[a][0], (int(d.rng.integers(1, 6)), 3))
    kind, shape = d.known[a]
    return a, kind, shape, int(d.rng.integers(0, len(shape)))


def _reduce(d: Draw) -> None:
    """Sums and products stay in what a double holds, which is what onnxruntime computes them in."""
    op = str(d.rng.choice(["ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd"]))
    a, kind, shape, axis = _ranked(d, WIDE)
    if op in ("ReduceSum", "ReduceProd"):
        a = d.input(kind, shape)
        largest = min(2.0**53, np.iinfo(kind).max / 2)
        most = int(largest / shape[axis] if op == "ReduceSum" else largest ** (1 / shape[axis]))
        d.given[a] = d.rng.integers(-most, most, shape, kind)
    d.add(op, [a, d.weight(np.array([axis]))], kind, (*shape[:axis], *shape[axis + 1 :]), keepdims=0)


def _best(d: Draw) -> None:
    a, _, shape, axis = _ranked(d, ("int32", "float32", "uint8"))
    left = (*shape[:axis], *shape[axis + 1 :])
    op, last = str(d.rng.choice(["ArgMax", "ArgMin"])), int(d.rng.integers(0, 2))
    d.add(op, [a], "int64", left, axis=axis, keepdims=0, select_last_index=last)


def _top(d: Draw) -> None:
    a, kind, shape, axis = _ranked(d, MIXED)
    k = int(d.rng.integers(1, shape[axis] + 1))
    kept = (*shape[:axis], k, *shape[axis + 1 :])
    values = d.add("TopK", [a, d.weight(np.array([k]))], kind, kept, axis=axis, largest=int(d.rng.integers(0, 2)))
    d.nodes[-1].output.append(f"{values}.places")
    d.known[f"{values}.places"] = "int64", kept


def _cumulated(d: Draw) -> None:
    a, *_, axis = _ranked(d, WIDE)
    d.same("CumSum", [a, d.weight(np.array(axis))])


def _gather(d: Draw) -> None:
    """Places are stored, given, or computed."""
    a, kind, shape, axis = _ranked(d, ANY)
    count = int(d.rng.integers(1, 5))
    places = d.rng.integers(-shape[axis], shape[axis], count)
    name = d.weight(places)
    if d.rng.random() < 0.6:
        name = d.input("int64", (count,))
        d.given[name] = places
    d.add("Gather", [a, name], kind, (*shape[:axis], count, *shape[axis + 1 :]), axis=axis)


def _move(d: Draw) -> None:
    a, kind, shape, axis = _ranked(d, ANY)
    op = str(d.rng.choice(["Transpose", "Reshape", "Concat", "Slice", "Expand", "Pad"]))
    if op == "Transpose":
        _turn(d, a)
    elif op == "Reshape":
        d.add(op, [a, d.weight(np.array([-1]))], kind, (int(np.prod(shape)),))
    elif op == "Concat":
        b = d.input(kind, shape)
        d.add(op, [a, b], kind, (*shape[:axis], 2 * shape[axis], *shape[axis + 1 :]), axis=axis)
    elif op == "Slice":
        bounds = [np.array([each]) for each in (0, shape[axis] - (shape[axis] > 1), axis)]
        kept = (*shape[:axis], int(bounds[1][0]), *shape[axis + 1 :])
        d.add(op, [a, *map(d.weight, bounds)], kind, kept)
    elif op == "Expand":
        d.add(op, [a, d.weight(np.array([2, *shape]))], kind, (2, *shape))
    elif kind in (*WIDE, "float32", "uint8", "int8"):
        pads = np.zeros((2, len(shape)), np.int64)
        pads[:, axis] = d.rng.integers(0, 3, 2)
        value = d.weight(numbers(d.rng, kind))
        new = tuple(np.add(shape, pads.sum(0)).tolist())
        d.add(op, [a, d.weight(pads.reshape(-1)), value], kind, new)


def _layer(d: Draw) -> None:
    """A convolution of which every sum is exact in fp32."""
    n, c, k, h, w = d.rng.integers(1, 5, 5).tolist()
    weight = d.weight(d.rng.integers(-3, 4, (k, c, 1, 1)).astype(np.float32))
    d.add("Conv", [d.input("float32", (n, c, h, w)), weight], "float32", (n, k, h, w))


def _turned(d: Draw) -> None:
    """Draw a turned tensor, or a layer's image, in another type, turned; in between perhaps a part of it."""
    kinds = [str(kind) for kind in d.rng.choice(MIXED, 2)]
    if d.rng.random() < 0.4:
        _layer(d)
        kinds[0] = "float32"
    else:
        _turn(d, d.input(kinds[0], d.rng.integers(2, 5, 4).tolist()))
    code = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(kinds[1]))
    a, (_, shape) = list(d.known.items())[-1]
    a = d.add("Cast", [a], kinds[1], shape, to=code)
    if shape[2] > 1 and d.rng.random() < 0.7:
        a = d.add("Slice", [a, *(d.weight(np.array([each])) for each in (1, shape[2], 2))], kinds[1],
                  (*shape[:2], shape[2] - 1, shape[3]))  # fmt: skip
    _turn(d, a)


def _turn(d: Draw, a: str) -> None:
    kind, shape = d.known[a]
    perm = d.rng.permutation(len(shape)).tolist()
    d.add("Transpose", [a], kind, tuple(shape[axis] for axis in perm), perm=perm)


Draws = tuple[Callable[[Draw], None], ...]
DRAWS: Draws = (
    _binary, _binary, _divide, _extreme, _compare, _logical, _where, _cast, _cast, _cast, _bitwise, _shift, _unary,
    _clip, _reduce, _best, _top, _cumulated, _gather, _move, _move, _turned,
)  # fmt: skip
MOVES: Draws = (_cast, _unary, _top, _move, _move, _turned, _turned)
"""Draws that move numbers, and between which a type changes."""


def drawn(rng: np.random.Generator, number: int, draws: Draws) -> Case | None:
    """A case with the outputs that onnxruntime gives; None where it refuses."""
    d = Draw(rng)
    for _ in range(int(rng.integers(1, 6))):
        draws[int(rng.integers(len(draws)))](d)
    if not d.nodes:
        return None
    helper = onnx.helper
    ports = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in d.given.items()
    ]
    stored = [onnx.numpy_helper.from_array(array, name) for name, array in d.weights.items()]
    read = {name for node in d.nodes for name in node.input}
    last = [name for node in d.nodes for name in node.output if name not in read]
    made = [helper.make_empty_tensor_value_info(name) for name in last]
    return judged(f"typed.{number}", helper.make_graph(d.nodes, "one", ports, made, stored), d.given)


class Exact(Case):
    """A case whose whole numbers are to be the same to the last bit, and whose floats nearly."""

    def faults(self, got: Any) -> str:
        for name, wanted in self.outputs.items():
            if wanted.dtype.kind not in "iu":
                continue
            found = np.asarray(got[name])
            if found.dtype.kind == "f":
                if not np.isfinite(found).all():
                    return f"{name} is not finite"
                found = found.astype(np.int64)
            if wanted.dtype == np.uint64:
                found = found.astype(np.uint64)
            if not np.array_equal(found, wanted):
                return f"{name} is {found.reshape(-1)[:8]}, expected {wanted.reshape(-1)[:8]}"
        return super().faults({**got, **{name: y for name, y in self.outputs.items() if y.dtype.kind in "iu"}})


def cases(rng: np.random.Generator, first: int, count: int, path: Path, draws: Draws = DRAWS) -> list[Found]:
    """Draw `count` cases that the import takes."""
    found: list[Found] = []
    while len(found) < count:
        case = drawn(rng, first + len(found), draws)
        if case is not None and case.inputs:
            exact = Exact(case.name, case.model, case.inputs, case.outputs)
            found.append(imported(exact, path, single=True))
    return found


def types_of(case: Case) -> set[str]:
    """Return the element types of a case's inputs, weights and outputs."""
    stored = map(onnx.numpy_helper.to_array, case.model.graph.initializer)
    return {array.dtype.name for array in (*case.inputs.values(), *case.outputs.values(), *stored)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--cases", type=int, default=10**9, help="at most so many")
    parser.add_argument("--backends", default="cpu,opencl,vulkan")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    rng, end, number = np.random.default_rng(options.seed), time.monotonic() + 60 * options.minutes, 0
    counts, operators = Counter[str](), Counter[str]()
    types = {api: Counter[str]() for api in options.backends.split(",")}
    print(f"seed {options.seed}", flush=True)
    with suppress(KeyboardInterrupt):
        while time.monotonic() < end and number < options.cases:
            with TemporaryDirectory() as folder:
                found = cases(rng, number, TOGETHER, Path(folder) / "m.onnx")
                number += TOGETHER
                for one in found:
                    if one.wrong:
                        counts["WRONG by the reference"] += 1
                        print(f"WRONG by the reference: {one.wrong[:300]} {text_of(one.case)}", flush=True)
                    elif not one.graphs:
                        counts[f"refused: {one.refusals[-1].split(': ', 1)[-1]}"[:120]] += 1
                    operators.update(node.op_type for node in one.case.model.graph.node)
                good = [one for one in found if one.graphs]
                for api, right in types.items():
                    wrong = agent_says(good, Path(folder), api)
                    right.update(kind for one in good if one.case.name not in wrong for kind in types_of(one.case))
                    counts[f"right on {api}"] += len(good) - len(wrong)
                    counts[f"WRONG on {api}"] += len(wrong)
                    for one in good:
                        if one.case.name in wrong:
                            print(f"WRONG on {api}: {wrong[one.case.name][:300]} {text_of(one.case)}", flush=True)
    print("\n".join(f"{count:6} {what}" for what, count in counts.most_common()))
    print(" ".join(f"{op} {count}" for op, count in operators.most_common()))
    for api, right in types.items():
        print(f"right on {api}, by types: {' '.join(f'{kind} {right[kind]}' for kind in sorted(right))}")
    return int(any(count and what.startswith("WRONG") for what, count in counts.items()))


if __name__ == "__main__":
    sys.exit(main())
