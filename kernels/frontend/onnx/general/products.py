"""Matrix products of operands of any rank, either of which may be constant."""

from __future__ import annotations

from functools import partial
from math import prod

import numpy as np

from kernels.errors import ModelError
from kernels.frontend.onnx.context import Context, OnnxNode
from kernels.ir.expressions import Expression
from kernels.ir.shapes import Shape

from .steps import Steps


def matmul(node: OnnxNode, to: Context) -> None:
    s = Steps(node, to)
    a, b = s.operand(0), s.operand(1)
    left, right = s.shape(a), s.shape(b)
    if not left or not right:
        raise ModelError(f"node {node.name!r} ({node.op}): a single number is no matrix")
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


def _check_addend(s: Steps, given: Shape, shape: Shape) -> None:
    fits = len(given) <= len(shape) and all(a in (1, b) for a, b in zip(reversed(given), reversed(shape), strict=False))
    if not fits:
        raise ModelError(
            f"node {s.node.name!r} ({s.node.op}): C ({s.node.input(2)!r}) has shape {given}, which does not broadcast "
            f"to the product's {shape}"
        )


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


def letters_of(s: Steps, equation: str, names: list[str]) -> tuple[list[str], str]:
    """Letters of each operand and of the result; what `...` stands for gets letters too."""
    left, arrow, result = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(names):
        raise ModelError(f"node {s.node.name!r} (Einsum): equation {equation!r} has not {len(names)} operands")
    spare = [chr(code) for code in range(0x3B1, 0x3B1 + 24)]
    longest = 0
    for index, (term, name) in enumerate(zip(terms, names, strict=True)):
        more = len(s.shape(name)) - len(term.replace("...", ""))
        if more < 0 or (more and "..." not in term):
            raise ModelError(f"node {s.node.name!r} (Einsum): {term!r} does not fit shape {s.shape(name)}")
        terms[index] = term.replace("...", "".join(spare[len(spare) - more :]))
        longest = max(longest, more)
    every = "".join(terms)
    dots = "".join(spare[len(spare) - longest :])
    if not arrow:
        result = dots + "".join(sorted({x for x in every if every.count(x) == 1 and x not in dots}))
    result = result.replace("...", dots)
    if len(set(result)) < len(result):
        raise ModelError(f"node {s.node.name!r} (Einsum): equation {equation!r} names an axis of its result twice")
    return terms, result


def _diagonal(s: Steps, name: str, term: str) -> tuple[str, str]:
    """Take the diagonal of repeated axes; return it with the letters, each once."""
    letters, shape = "".join(dict.fromkeys(term)), s.shape(name)
    if letters == term:
        return name, term
    of = {letter: [axis for axis, each in enumerate(term) if each == letter] for letter in letters}
    extents = [shape[axes[0]] for axes in of.values()]
    if any(shape[axis] != shape[axes[0]] for axes in of.values() for axis in axes):
        raise ModelError(f"node {s.node.name!r} (Einsum): {term!r} does not fit shape {shape}")
    strides = [sum(prod(shape[axis + 1 :]) for axis in axes) for axes in of.values()]
    return s.take(name, extents, [np.arange(extent) for extent in extents], strides), letters


def _summed(s: Steps, name: str, letters: str, kept: set[str]) -> tuple[str, str]:
    """Add up the axes that nothing else reads."""
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
