"""Operators that read tensors of which some axes are padded (`rows.py`).

Most compute each row by itself, and what they make of the padding is padding. Those that look along a padded axis find
there what leaves their result as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from kernels.frontend.onnx.context import Context, OnnxNode
from kernels.frontend.onnx.general import functions, products, reductions
from kernels.frontend.onnx.general.suppressing import GONE
from kernels.ir.expressions import Expression

from . import resizing, shaping
from .bounds import bounds_of
from .counts import number, whole_numbers, write_out
from .extent import Count, Extent, most, quotient
from .rows import Counts, Emit, Rows

_EXTENTS = {"ConstantOfShape": 0, "Expand": 1, "Range": 0, "Reshape": 1, "Resize": 3, "Slice": 1, "TopK": 1}
"""Operators that read extents, from this input on."""


def prepare(node: OnnxNode, to: Context) -> bool:
    """Return whether `import_rows` is to import a node. Whole numbers that it computes with become tensors."""
    for index, name in enumerate(node.inputs):
        if name in to.extents and index < _EXTENTS.get(node.op, index + 1):
            write_out(node, to, name)
    return any(name in to.counts or name in to.extents for name in node.inputs)


def import_rows(node: OnnxNode, to: Context, emit: Emit) -> None:
    """A node of which an input is padded, or says an extent that is."""
    rows = Rows(node, to, emit)
    if node.op not in RULES:
        rows.refuse(f"{node.op} of such rows is not supported")
    RULES[node.op](rows)


def _elementwise(r: Rows) -> None:
    every = [r.extents(index) for index in range(len(r.node.inputs)) if r.has(index)]
    rank = max(map(len, every))
    found: Counts = {}
    for axis in range(rank):
        wide = [e[axis - rank] for e in every if len(e) >= rank - axis and e[axis - rank] != 1]
        if any(isinstance(each, Count) for each in wide):
            if any(each != wide[0] for each in wide):
                r.refuse(f"its operands may have different numbers of them along axis {axis}")
            found[axis] = wide[0]  # type: ignore[assignment]
    r.import_from()
    r.tell(found)


def _passed(r: Rows) -> None:
    """Each row by itself: the first input's first axis, or channels and pictures that nothing looks along."""
    r.only(0, (0,), "is looked along")
    for index in range(1, len(r.node.inputs)):
        r.only(index, (), "is looked along")
    r.import_from()
    r.tell(*[r.counts(0)] * len(r.node.outputs))


def _along(value: float, later: bool = True) -> Callable[[Rows], None]:
    """Make the rule of nodes that look along one axis, before opset 13 along all from it on; the padding holds `value`
    there."""

    def rule(r: Rows) -> None:
        rank = len(r.shape(r.operand(0)))
        axes = reductions.softmax_axes(r, rank) if later else [r.node.axis(r.attribute("axis", 0), rank)]
        r.import_from(r.masked(0, value, axes))
        r.tell(r.counts(0))

    return rule


def _normalised(r: Rows) -> None:
    rank = len(r.shape(r.operand(0)))
    r.only(0, range(r.node.axis(r.attribute("axis", -1), rank)), "is looked along")
    r.import_from()
    r.tell(r.counts(0))


def _cumulated(r: Rows) -> None:
    r.import_from(r.masked(0, 0.0))
    r.tell(r.counts(0))


_NEUTRAL = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": -np.inf, "min": np.inf}


def _kept(r: Rows, axes: Sequence[int], keep: bool) -> Counts:
    """Counts of the axes that are not reduced."""
    left = [axis for axis in range(len(r.shape(r.operand(0)))) if axis not in axes]
    return {axis if keep else left.index(axis): c for axis, c in r.counts(0).items() if axis not in axes}


def _reduced(r: Rows) -> None:
    axes = reductions.axes_of(r, len(r.shape(r.operand(0))))
    keep = bool(r.attribute("keepdims", 1))
    counts, kind = r.counts(0), reductions.REDUCTIONS.get(r.node.op, (None, "max", None))[1]
    along = [counts[axis] for axis in axes if axis in counts]
    value = _NEUTRAL[kind]
    found = r.masked(0, value, axes)
    if r.node.op == "ReduceMean" and along:
        if r.to.type_of(r.operand(0)).kind != "f":
            r.refuse("a mean of whole numbers is not supported")
        total = r.reduce(found, axes, "sum", keep=keep)
        valid = r.extents(0)
        share = number(r, quotient([valid[axis] for axis in axes], []))
        r.end(r.map(("div", "a", "b"), total, r.reshape(share, (1,) * len(r.shape(total)))))
    else:
        r.import_from(found)
    r.tell(_kept(r, axes, keep))


def _place(r: Rows) -> None:
    """ArgMax and ArgMin."""
    axis = r.node.axis(r.attribute("axis", 0), len(r.shape(r.operand(0))))
    r.import_from(r.masked(0, -np.inf if r.node.op == "ArgMax" else np.inf, [axis]))
    r.tell(_kept(r, [axis], bool(r.attribute("keepdims", 1))))


def _top(r: Rows) -> None:
    rank = len(r.shape(r.operand(0)))
    axis = r.node.axis(r.attribute("axis", -1), rank)
    wanted = whole_numbers(r.to, r.node.input(1)) if r.node.opset >= 10 else [int(r.attribute("k"))]
    if wanted is None:
        r.refuse("the number of those that it takes is computed otherwise than by counting")
    k = min(most(wanted[0]), r.shape(r.operand(0))[axis])
    found = r.masked(0, -np.inf if r.attribute("largest", 1) else np.inf, [axis])
    r.import_from(found, r.stored([k]) if r.node.opset >= 10 else None)
    valid = {other: count for other, count in r.counts(0).items() if other != axis}
    if isinstance(wanted[0], Count):
        valid[axis] = wanted[0]
    r.tell(valid, valid)


def _from_the_first(r: Rows, indices: str, extents: Sequence[Extent]) -> str:
    """Indices of which none is negative, which counts from the last valid row; along the last axis each is of the next
    of `extents`, or all are of the only one."""
    known = r.value(indices)
    if bounds_of(r.to, indices)[0] >= 0 if known is None else not np.any(known < 0):
        return indices
    held = r.concat([number(r, extent) for extent in extents], 0)
    from_end: Expression = ("select", ("less", "a", 0.0), ("add", "a", "b"), "a")
    return r.map(from_end, r.tensor(indices), held if r.shape(indices) else r.reshape(held, ()))


def _taken(r: Rows) -> None:
    """Gather."""
    x, indices = r.operand(0), r.operand(1)
    axis = r.node.axis(r.attribute("axis", 0), len(r.shape(x)))
    named, counts = len(r.shape(indices)), r.counts(0)
    places = _from_the_first(r, indices, [counts[axis]]) if axis in counts else indices
    if places == indices:
        r.import_from()
    else:
        r.places(r.shape(x)[axis])
        r.end(r.gather(x, places, axis))
    found = {k if k < axis else k + named - 1: c for k, c in counts.items() if k != axis}
    r.tell({**found, **{axis + k: c for k, c in r.counts(1).items()}})


def _taken_rows(r: Rows) -> None:
    """GatherND."""
    indices, counts, batch = r.operand(1), r.counts(0), int(r.attribute("batch_dims", 0))
    rest, inner = len(r.shape(indices)) - 1, batch + r.shape(indices)[-1]
    r.only(0, range(batch, len(r.shape(r.operand(0)))), "is looked along")
    r.only(1, range(rest), "is looked along")
    inside = any(batch <= axis < inner for axis in counts)
    r.import_from(None, _from_the_first(r, indices, r.extents(0)[batch:inner]) if inside else None)
    r.tell({**r.counts(1), **{k - inner + rest: c for k, c in counts.items() if k >= inner}})


def _taken_elements(r: Rows) -> None:
    rank = len(r.shape(r.operand(0)))
    axis = r.node.axis(r.attribute("axis", 0), rank)
    r.only(0, [k for k in range(rank) if k != axis], "is looked along")
    if any(r.counts(0).get(k) != r.counts(1).get(k) for k in r.counts(0)):
        r.refuse("its operands may have different numbers of them")
    r.import_from()
    r.tell(r.counts(1))


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
        r.refuse("its operands may have different numbers of them")
    r.import_from(*(r.masked(index, 0.0, [across[index]]) for index in (0, 1)))
    r.tell({k: c for k, c in found.items() if c is not None})


def _einsum(r: Rows) -> None:
    equation = str(r.attribute("equation")).replace(" ", "")
    terms, result = products.letters_of(r, equation, [r.operand(index) for index in range(len(r.node.inputs))])
    found: dict[str, Extent] = {}
    for index, term in enumerate(terms):
        for axis, (letter, extent) in enumerate(zip(term, r.extents(index), strict=True)):
            counted = isinstance(extent, Count) or isinstance(found.get(letter), Count)
            if counted and (found.get(letter, extent) != extent or letter in term[:axis]):
                r.refuse("its operands may have different numbers of them")
            found[letter] = extent
    added = ([axis for axis, letter in enumerate(term) if letter not in result] for term in terms)
    r.import_from(*(r.masked(index, 0.0, axes) for index, axes in enumerate(added)))
    r.tell({axis: c for axis, letter in enumerate(result) if isinstance(c := found[letter], Count)})


def _not_zero(r: Rows) -> None:
    r.import_from(r.masked(0, 0.0))


def _suppressed(r: Rows) -> None:
    r.only(0, (1,), "is looked along")
    r.only(1, (2,), "is looked along")
    if r.counts(0).get(1) != r.counts(1).get(2):
        r.refuse("its operands may have different numbers of them")
    r.import_from(None, r.masked(1, GONE))


def _aligned(r: Rows) -> None:
    """RoiAlign."""
    r.only(0, (), "is looked along")
    r.only(1, (0,), "is looked along")
    if r.counts(1) != r.counts(2):
        r.refuse("its operands may have different numbers of them")
    r.import_from()
    r.tell(r.counts(1))


def _scattered(r: Rows) -> None:
    """Updates that are padding go nowhere. ScatterND's numbers may be computed apart: ONNX asks for as many of both."""
    shape = r.shape(r.operand(0))
    elements = r.node.op != "ScatterND"
    axis = r.node.axis(r.attribute("axis", 0), len(shape)) if elements else 0
    named = [axis] if elements else range(r.shape(r.operand(1))[-1])
    if len(named) > 1 and any(k in r.counts(0) for k in named):
        r.refuse("several indices name such rows")
    r.only(1, (axis,), "is looked along")
    indices, updates = r.operand(1), r.operand(2)
    counted = r.counts(2).get(axis)
    if elements and counted != r.counts(1).get(axis):
        r.refuse("its operands may have different numbers of them")
    source = r.to.spread.get(indices, "")
    shared = bool(source) and all(k == axis or extent == 1 for k, extent in enumerate(r.shape(source)))
    name = source if shared else indices
    if count := r.counts(0).get(axis):
        held = r.reshape(number(r, count), (1,) * len(r.shape(name)))
        name = r.map(("select", ("less", "a", 0.0), ("add", "a", "b"), "a"), r.tensor(name), held)
    for count in dict.fromkeys(filter(None, (r.counts(1).get(axis), counted))):
        name = r.covered(name, {axis: count}, float(max(shape[k] for k in named)))
    if shared:
        name = r.expand(name, r.shape(indices))
    if not elements:
        many = min(r.shape(indices)[0], r.shape(updates)[0])
        name, updates = r.slice(name, 0, 0, many), r.slice(updates, 0, 0, many)
    r.to.types[name] = np.dtype(np.int64)
    r.import_from(None, name, updates)
    r.tell(r.counts(0))


def _resized(r: Rows) -> None:
    if r.node.input(3) in r.to.extents:
        r.only(0, (0, 1), "is looked along")
        resizing.resize(r)
    else:
        _passed(r)


def _padded(r: Rows) -> None:
    """Pad: other axes than those of which some elements are valid."""
    rank = len(r.shape(r.operand(0)))
    axes, pads = r.whole_numbers(3), r.whole_numbers(1, "pads") or []
    named = range(rank) if axes is None else r.node.distinct_axes(axes, rank)
    zero = [axis for k, axis in enumerate(named) if not any(pads[k :: len(named)])]
    r.only(0, [axis for axis in range(rank) if axis in zero or axis not in named], "gets a border")
    r.import_from()
    r.tell(r.counts(0))


_BATCHES = (
    "AveragePool", "BatchNormalization", "Conv", "ConvTranspose", "DepthToSpace", "GlobalAveragePool", "GlobalMaxPool",
    "InstanceNormalization", "LRN", "MaxPool", "SpaceToDepth", "Upsample",
)  # fmt: skip
_OTHER = ("Cast", "CastLike", "Clip", "Dropout", "Identity", "Mod", "Relu", "LeakyRelu", "Where")
RULES: dict[str, Callable[[Rows], None]] = {
    **dict.fromkeys((*functions.UNARY, *functions.BINARY, *functions.VARIADIC, *_OTHER), _elementwise),
    **dict.fromkeys(_BATCHES, _passed),
    **dict.fromkeys((*reductions.REDUCTIONS, "ReduceLogSumExp"), _reduced),
    **dict.fromkeys(("ArgMax", "ArgMin"), _place),
    **dict.fromkeys(("Softmax", "LogSoftmax", "Hardmax"), _along(-np.inf)),
    **dict.fromkeys(("LayerNormalization", "RMSNormalization"), _normalised),
    **dict.fromkeys(("MatMul", "Gemm"), _product),
    **dict.fromkeys(("Scatter", "ScatterElements", "ScatterND"), _scattered),
    "Concat": shaping.joined,
    "ConstantOfShape": shaping.filled,
    "CumSum": _cumulated,
    "Einsum": _einsum,
    "Expand": shaping.expanded,
    "Flatten": shaping.flattened,
    "Gather": _taken,
    "GatherElements": _taken_elements,
    "GatherND": _taken_rows,
    "NonMaxSuppression": _suppressed,
    "NonZero": _not_zero,
    "OneHot": shaping.marked,
    "Pad": _padded,
    "Range": shaping.counted,
    "Reshape": shaping.reshaped,
    "Resize": _resized,
    "RoiAlign": _aligned,
    "Slice": shaping.sliced,
    "Split": shaping.divided,
    "Squeeze": shaping.squeezed,
    "Tile": shaping.repeated,
    "TopK": _top,
    "Transpose": shaping.transposed,
    "Unsqueeze": shaping.unsqueezed,
}
