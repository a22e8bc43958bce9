"""Matrix products of operands of any rank, either of which may be constant."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from math import prod

import numpy as np

from kernels.frontend.onnx.axes import letters_of
from kernels.frontend.onnx.context import AnyArray, Context, OnnxNode
from kernels.frontend.onnx.counted_rows.rows import Rows
from kernels.frontend.onnx.extent import Count, Extent
from kernels.frontend.onnx.operator import Operator
from kernels.frontend.onnx.operators.arithmetic import spread_to, with_constant
from kernels.frontend.onnx.steps import Steps
from kernels.ir.expressions import Expression
from kernels.ir.graph import Graph, Node
from kernels.reference import evaluate


def matmul(node: OnnxNode, to: Context) -> None:
    s = Steps(node, to)
    a, b = s.operand(0), s.operand(1)
    left, right = s.shape(a), s.shape(b)
    if not left or not right:
        node.damaged("a single number is no matrix")
    a = _lifted(s, a, (1, *left)) if len(left) == 1 else a
    b = _lifted(s, b, (*right, 1)) if len(right) == 1 else b
    product = s.matmul(a, b)
    shape = list(s.shape(product))
    if len(right) == 1:
        del shape[-1]
    if len(left) == 1:
        del shape[-1 if len(right) == 1 else -2]
    s.end(s.reshape(product, shape))


def _lifted(s: Steps, name: str, shape: tuple[int, ...]) -> str:
    value = s.value(name)
    return s.reshape(name, shape) if value is None else s.constant(value.reshape(shape), name)


def gemm(node: OnnxNode, to: Context) -> None:
    s = Steps(node, to)
    a, b = (
        s.transpose(name, (1, 0)) if s.attribute(key, 0) else name
        for name, key in ((s.operand(0), "transA"), (s.operand(1), "transB"))
    )
    product = s.matmul(a, b)
    if s.has(2):
        _check_addend(s, s.shape(s.operand(2)), s.shape(product))
    alpha, beta = float(s.attribute("alpha", 1.0)), float(s.attribute("beta", 1.0))
    expression: Expression = "a" if alpha == 1 else ("mul", alpha, "a")
    if s.has(2) and beta:
        s.end(s.map(("add", expression, "b" if beta == 1 else ("mul", beta, "b")), product, s.operand(2)))
    else:
        s.end(product if alpha == 1 else s.map(expression, product))


def _check_addend(s: Steps, given: tuple[int, ...], shape: tuple[int, ...]) -> None:
    fits = len(given) <= len(shape) and all(a in (1, b) for a, b in zip(reversed(given), reversed(shape), strict=False))
    if not fits:
        s.node.damaged(f"C ({s.node.input(2)!r}) has shape {given}, which does not broadcast to the product's {shape}")


def einsum(node: OnnxNode, to: Context) -> None:
    """Multiply and add axes of one operand, or of two as a matrix product."""
    s = Steps(node, to)
    names = [s.operand(index) for index in range(len(node.inputs))]
    terms, result = letters_of(s, str(s.attribute("equation")).replace(" ", ""), names)
    extents: dict[str, int] = {}
    for name, term in zip(names, terms, strict=True):
        for letter, extent in zip(term, s.shape(name), strict=True):
            extents[letter] = max(extents.get(letter, 1), extent)
    names, terms = (list(part) for part in zip(*map(partial(_diagonal, s), names, terms), strict=True))
    found, letters = _summed(s, names[0], terms[0], {*result, *"".join(terms[1:])})
    for index in range(1, len(names)):
        other, others = _summed(s, names[index], terms[index], {*result, *letters, *"".join(terms[index + 1 :])})
        kept = {*result, *"".join(terms[index + 1 :])}
        found, letters = _multiplied(s, (found, letters), (other, others), kept, extents)
    found, letters = _summed(s, found, letters, set(result))
    s.end(s.transpose(found, [letters.index(letter) for letter in result]))


def _diagonal(s: Steps, name: str, term: str) -> tuple[str, str]:
    """Take the diagonal of repeated axes; return it with the letters, each once."""
    letters, shape = "".join(dict.fromkeys(term)), s.shape(name)
    if letters == term:
        return name, term
    of = {letter: [axis for axis, each in enumerate(term) if each == letter] for letter in letters}
    extents = [shape[axes[0]] for axes in of.values()]
    if any(shape[axis] != shape[axes[0]] for axes in of.values() for axis in axes):
        s.node.damaged(f"{term!r} does not fit shape {shape}")
    strides = [sum(prod(shape[axis + 1 :]) for axis in axes) for axes in of.values()]
    return s.take(name, extents, [np.arange(extent) for extent in extents], strides), letters


def _summed(s: Steps, name: str, letters: str, kept: set[str]) -> tuple[str, str]:
    """Sum over the axes that nothing else reads."""
    gone = [axis for axis, letter in enumerate(letters) if letter not in kept]
    left = "".join(letter for letter in letters if letter in kept)
    return (s.reduce(name, gone, "sum", keep=False) if gone else name), left


def _multiplied(
    s: Steps, left: tuple[str, str], right: tuple[str, str], kept: set[str], extents: dict[str, int]
) -> tuple[str, str]:
    (a, first), (b, second) = left, right
    both = [x for x in first if x in second]
    batch, depth = [x for x in both if x in kept], [x for x in both if x not in kept]
    rows, columns = [x for x in first if x not in both], [x for x in second if x not in both]

    def turned(name: str, letters: str, *groups: list[str]) -> str:
        order = [letter for group in groups for letter in group]
        name = s.transpose(name, [letters.index(letter) for letter in order])
        name = s.expand(name, [extents[letter] for letter in order])
        return s.reshape(name, [prod(extents[letter] for letter in group) for group in groups])

    product = s.matmul(turned(a, first, batch, rows, depth), turned(b, second, batch, depth, columns))
    order = [*batch, *rows, *columns]
    return s.reshape(product, [extents[letter] for letter in order]), "".join(order)


def gemm_directly(node: OnnxNode, to: Context) -> bool:
    """alpha * A' * B' + beta * C with constant B: a dense layer; alpha, beta and transB go into its constants."""
    a, weight = node.input(0), to.known_finite(node, 1)
    if not to.is_activation(a) or weight is None or len(to.shapes[a]) != 2:
        return False
    alpha, beta = node.attributes.get("alpha", 1.0), node.attributes.get("beta", 1.0)
    term = to.known_finite(node, 2) if beta else None
    if term is None and node.input(2) and beta:
        return False
    weight = weight.astype(np.float64) * alpha if alpha != 1 else weight
    weight = weight.T if node.attributes.get("transB", 0) else weight
    rows, columns = to.shapes[a][1 if node.attributes.get("transA", 0) else 0], weight.shape[-1]
    term = None if term is None else np.asarray(term.astype(np.float64) * beta)
    is_bias = term is not None and term.ndim <= 2 and term.size in (1, columns) and term.shape[:-1] in ((), (1,))
    if term is not None and not is_bias and spread_to((rows, columns), term) is None:
        return False
    if node.attributes.get("transA", 0):
        a = to.emit(node, "transpose", (a,), {"perm": (1, 0)}, output=to.fresh(f"{node.outputs[0]}.a"))
    w = to.add_weight(_derived(node.input(1), to, weight), weight)
    if term is None:
        to.emit(node, "dense", (a, w))
    elif is_bias:
        bias = np.broadcast_to(term.reshape(-1), (columns,))
        to.emit(node, "dense", (a, w, to.add_weight(_derived(node.input(2), to, bias), bias)))
    else:
        product = to.emit(node, "dense", (a, w), output=to.fresh(f"{node.outputs[0]}.product"))
        with_constant(node, to, "add", product, term)
    return True


def matmul_directly(node: OnnxNode, to: Context) -> bool:
    """Multiply: with a constant matrix a dense layer over the last axis, otherwise the product of two activations."""
    a, b = node.inputs
    if not to.is_activation(a):
        return False
    shape = to.shapes[a]
    if b not in to.constants:
        fits = min(len(shape), len(to.shapes[b])) > 1 and shape[:-2] == to.shapes[b][:-2]
        return fits and bool(to.emit(node, "matmul", (a, b)))
    weight = to.known_finite(node, 1)
    if weight is None or weight.ndim != 2:
        return False
    w = to.add_weight(b, weight)
    if len(shape) == 2:
        to.emit(node, "dense", (a, w))
        return True
    rows = (prod(shape[:-1]), shape[-1])
    flat = to.reshape(node, a, rows, output=to.fresh(f"{node.outputs[0]}.rows"))
    product = to.emit(node, "dense", (flat, w), output=to.fresh(f"{node.outputs[0]}.product"))
    to.reshape(node, product, (*shape[:-1], weight.shape[1]))
    return True


def _derived(name: str, to: Context, value: AnyArray) -> str:
    """The constant's own name where it is used as it is, otherwise one beside it."""
    return name if np.array_equal(to.constants[name], value) else f"{name}.dense"


def _product(r: Rows) -> None:
    """MatMul and Gemm."""
    a, b = (len(r.shape(r.operand(index))) for index in (0, 1))
    if r.node.op == "Gemm":
        across = 0 if r.attribute("transA", 0) else 1, 1 if r.attribute("transB", 0) else 0
        found = {0: r.counts(0).get(1 - across[0]), 1: r.counts(1).get(1 - across[1])}
    else:
        across = a - 1, max(0, b - 2)
        if min(a, b) < 2 or any(k < b - 2 for k in r.counts(1)) or (b > 2 and any(k < a - 2 for k in r.counts(0))):
            r.refuse("a product of such a batch is not supported")
        found = {max(a, b) - 1: r.counts(1).get(b - 1), **{k: c for k, c in r.counts(0).items() if k < a - 1}}
        found = {k + max(a, b) - a if k < max(a, b) - 1 else k: c for k, c in found.items()}
    if r.extents(0)[across[0]] != r.extents(1)[across[1]]:
        r.differ()
    if _adds_zeros(r, across[0] == a - 1):
        r.import_from()
    else:
        r.import_from(*(r.masked(index, 0.0, [across[index]]) for index in (0, 1)))
    r.tell({k: c for k, c in found.items() if c is not None})


def _adds_zeros(r: Rows, along_rows: bool) -> bool:
    """Return whether the padding adds nothing as it is: shares of a softmax, 0 there, times finite rows of a state."""
    if not r.to.states or not along_rows:
        return False
    writers = {node.output: node for node in r.to.nodes}
    shares = _written_by(r.operand(0), writers, _keeps_zeros)
    rows = _written_by(r.operand(1), writers, lambda node: node.op in ("reshape", "transpose", "take"))
    if shares is None or rows is None or shares.op != "softmax" or rows.op != "put_rows":
        return False
    same = r.to.shapes[shares.output][-1] == r.shape(r.operand(0))[-1]
    return same and shares.attributes["axis"] == len(r.to.shapes[shares.output]) - 1 and rows.inputs[0] in r.to.states


def _written_by(name: str, writers: Mapping[str, Node], passes: Callable[[Node], bool]) -> Node | None:
    """The node that writes a tensor, behind those that let its elements pass."""
    while (node := writers.get(name)) is not None and passes(node):
        name = node.inputs[0]
    return node


def _keeps_zeros(node: Node) -> bool:
    """Return whether a node gives 0 of 0, such as PyTorch's test for NaN behind a softmax."""
    if node.op != "map" or len(node.inputs) != 1:
        return node.op == "reshape"
    one = Graph(node.name, node.inputs, node.outputs, [node], dict.fromkeys((*node.inputs, *node.outputs), (1,)), {})
    return not evaluate(one, {node.inputs[0]: np.zeros(1)})[node.output].any()


def _einsum(r: Rows) -> None:
    equation = str(r.attribute("equation")).replace(" ", "")
    terms, result = letters_of(r, equation, [r.operand(index) for index in range(len(r.node.inputs))])
    found: dict[str, Extent] = {}
    for index, term in enumerate(terms):
        for axis, (letter, extent) in enumerate(zip(term, r.extents(index), strict=True)):
            counted = isinstance(extent, Count) or isinstance(found.get(letter), Count)
            if counted and (found.get(letter, extent) != extent or letter in term[:axis]):
                r.differ()
            found[letter] = extent
    added = ([axis for axis, letter in enumerate(term) if letter not in result] for term in terms)
    r.import_from(*(r.masked(index, 0.0, axes) for index, axes in enumerate(added)))
    r.tell({axis: c for axis, letter in enumerate(result) if isinstance(c := found[letter], Count)})


_LARGEST = 32


def det(node: OnnxNode, to: Context) -> None:
    """The first row takes the pivot row's place, which costs a change of sign, and what is below becomes smaller."""
    s = Steps(node, to)
    x = s.operand(0)
    *lead, rows, n = (0, *s.shape(x))[-max(2, len(s.shape(x))) :]
    if rows != n:
        node.damaged(f"matrices of shape {s.shape(x)} are not square")
    if n > _LARGEST:
        node.reject(f"matrices of {n} rows; at most {_LARGEST} are supported")
    left, found = s.reshape(x, (prod(lead), n, n)), ""
    for size in range(n, 0, -1):
        column = s.slice(left, 2, 0, 1)
        best = s.reduce(s.map(("abs", "a"), column), [1], "argmax")
        chosen = s.map(("equal", "a", "b"), best, np.arange(size, dtype=np.int32).reshape(size, 1))
        row = s.reduce(s.map(("mul", "a", "b"), chosen, left), [1], "sum")
        pivot = s.slice(row, 2, 0, 1)
        signed = s.map(("select", ("equal", "a", 0.0), "b", ("neg", "b")), best, pivot)
        found = s.map(("mul", "a", "b"), found, signed) if found else signed
        if size > 1:
            share = s.map(("select", ("equal", "b", 0.0), 0.0, ("div", "a", "b")), column, pivot)
            others = (s.slice(each, 2, 1, size) for each in (left, row))
            below = s.map(("sub", "a", ("mul", "b", "c")), next(others), share, next(others))
            moved = s.slice(chosen, 1, 1, size), s.slice(below, 1, 0, 1), s.slice(below, 1, 1, size)
            left = s.map(("select", "a", "b", "c"), *moved)
    s.end(s.reshape(found, lead))


OPERATORS = (
    Operator("Det", import_=det),
    Operator("Einsum", import_=einsum, rows=_einsum),
    Operator("Gemm", operands=("i j", "k l", "..."), import_=gemm, direct=gemm_directly, rows=_product),
    Operator("MatMul", import_=matmul, direct=matmul_directly, rows=_product),
)
