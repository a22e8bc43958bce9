"""Determinants of small matrices: elimination row by row, of which the largest number of a column is the pivot."""

from __future__ import annotations

from math import prod

import numpy as np

from kernels.errors import ModelError
from kernels.frontend.onnx.context import Context, OnnxNode

from .steps import Steps

_LARGEST = 32


def det(node: OnnxNode, to: Context) -> None:
    """The first row takes the pivot row's place, which costs a change of sign, and what is below becomes smaller."""
    s = Steps(node, to)
    x = s.operand(0)
    *lead, rows, n = (0, *s.shape(x))[-max(2, len(s.shape(x))) :]
    if rows != n:
        raise ModelError(f"node {node.name!r} (Det): matrices of shape {s.shape(x)} are not square")
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
