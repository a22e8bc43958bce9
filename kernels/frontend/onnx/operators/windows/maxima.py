"""Places of the largest elements of windows, and elements put back to where such a place says (SegNet's unpooling).

Any place could be anywhere. But one that a max pooling found lies in its own window, also after an exporter added a
constant to it or gave it another shape: then each element looks at the windows that it lies in, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod

import numpy as np

from kernels.frontend.onnx.context import AnyArray, Context
from kernels.frontend.onnx.pooled import Maxima
from kernels.frontend.onnx.steps import Steps
from kernels.ir.expressions import LETTERS
from kernels.ir.graph import Node


def places_of(s: Steps, windows: str, of: Maxima) -> str | AnyArray:
    """Places (rows, counts...) of the first largest element of each window (rows, counts..., elements...)."""
    taps, many = prod(of.kernel), prod(of.counts)
    s.places(of.rows * of.plane)
    along = zip(np.indices(of.counts), of.strides, of.begins, of.steps, strict=True)
    starts = sum((index * stride - begin) * step for index, stride, begin, step in along).reshape(many)
    rows = np.arange(of.rows)[:, None] * of.plane
    if taps == 1:
        return np.asarray(starts + rows)
    inside = zip(np.indices(of.kernel), of.dilations, of.steps, strict=True)
    offsets = sum(index * dilation * step for index, dilation, step in inside).reshape(taps)
    best = s.reduce(s.reshape(windows, (of.rows, many, taps)), [2], "argmax", keep=False)
    return s.map(("add", ("add", "a", "b"), "c"), s.gather(s.constant(offsets), best, 0), starts, rows)


def followed(to: Context, name: str) -> tuple[Maxima, AnyArray] | None:
    """The windows whose places a tensor holds, and what was added to each place, (rows, windows)."""
    writers = {node.output: node for node in to.nodes}
    shape = to.shapes.get(name, ())
    added = np.zeros(shape)
    while name not in to.pooled:
        node = writers.get(name)
        if node is None:
            return None
        if node.op == "reshape":
            name, number = node.inputs[0], np.zeros(())
        elif (found := _added(to, node)) is not None:
            name, number = found
        else:
            return None
        added = (added + number).reshape(to.shapes[name])
    of = to.pooled[name]
    return of, added.reshape(of.rows, prod(of.counts))


def _added(to: Context, node: Node) -> tuple[str, AnyArray] | None:
    """The tensor to which a node adds a constant, and the constant; None of any other node."""
    plain = node.op == "add" and "activation" not in node.attributes
    function, *parts = node.attributes["expression"] if node.op == "map" else ("add", "a", "b") if plain else ("",)
    if function not in ("add", "sub") or any(isinstance(part, tuple) for part in parts):
        return None
    names = [node.inputs[LETTERS.index(part)] if isinstance(part, str) else "" for part in parts]
    values = [to.weights.get(name) if name else np.asarray(part) for name, part in zip(names, parts, strict=True)]
    for k in (0, 1) if function == "add" else (0,):
        value = values[1 - k]
        if value is not None and values[k] is None and to.shapes[names[k]] == to.shapes[node.output]:
            return names[k], np.asarray(value if function == "add" else -value)
    return None


def put_back(s: Steps, of: Maxima, first: AnyArray, places: str, x: str, into: str | float) -> str:
    """`into` (rows, extents...) with x (rows, counts...) at places whose numbers begin with `first` in each row; of two
    windows with one place the last one counts."""
    axes = len(of.extents)
    numbers = of.numbers()
    shape, strides = (of.rows, *of.extents), [prod(of.counts[axis:]) for axis in range(axes + 1)]
    found: str | float = into
    for tables in product(*(_windows_of(of, axis) for axis in range(axes))):
        every = [np.arange(of.rows), *tables]
        place, value = (
            s.take(s.reshape(name, (of.rows, *of.counts)), shape, every, strides, nothing)
            for name, nothing in ((places, -1.0), (x, 0.0))
        )
        here = s.map(("equal", "a", ("add", "b", "c")), place, numbers, first.reshape(-1, *(1,) * axes))
        found = s.map(("select", "a", "b", "c"), here, value, found)
    return str(found)


def _windows_of(of: Maxima, axis: int) -> Iterator[AnyArray]:
    """Yield the window in which each element of an axis lies, -1: none; as often as windows lie one over the other."""
    stride, dilation = of.strides[axis], of.dilations[axis]
    reach, at = (of.kernel[axis] - 1) * dilation, np.arange(of.extents[axis]) + of.begins[axis]
    for back in range(reach // stride, -1, -1):
        window = at // stride - back
        inside = at - window * stride
        fits = (window >= 0) & (window < of.counts[axis]) & (inside <= reach) & (inside % dilation == 0)
        if fits.any():
            yield np.where(fits, window, -1)
