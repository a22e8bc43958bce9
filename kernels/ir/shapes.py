"""Static shapes: what each canonical operation (`graph.py`) makes of the shapes of its inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import inf, isfinite, isnan, prod
from typing import Any

import numpy as np

from kernels.errors import ModelError

from .activations import ACTIVATIONS
from .cache import cached_shape
from .expressions import check_expression
from .graph import Node
from .operands import Shape as Shape
from .operands import bind
from .regions import KINDS
from .resampling import check_coordinates
from .sorting import GIVES

Attributes = Mapping[str, Any]


def window_count(
    extent: int, kernel: int, stride: int, pad_begin: int, pad_end: int, *, dilation: int = 1, ceil: bool = False
) -> int:
    """Count the positions of a sliding window along one axis.

    With `ceil` a last window may hang over the end, unless it would start in the padding behind the input.
    Less than 1 where the window does not fit.
    """
    room = extent + pad_begin + pad_end - (dilation * (kernel - 1) + 1)
    if not ceil:
        return room // stride + 1
    count = -(-room // stride) + 1
    return count - 1 if (count - 1) * stride >= extent + pad_begin else count


def window_shape(
    extents: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    pads: Sequence[int],
    *,
    dilations: Sequence[int] = (1, 1),
    ceil: bool = False,
) -> Shape:
    """Height and width of a convolution's or pooling's result; `pads` are (t, l, b, r). Raises ModelError."""
    out = tuple(
        window_count(extents[i], kernel[i], strides[i], pads[i], pads[i + 2], dilation=dilations[i], ceil=ceil)
        for i in range(2)
    )
    if min(out) < 1:
        raise ModelError(f"a window of {tuple(kernel)} does not fit into {tuple(extents)} with pads {tuple(pads)}")
    return out


MAX_TRANSPOSE_RANK = 4
LARGEST = 2**31 - 1
"""Kernels count in 32-bit integers."""

_ANY, _IMAGE = {"x": "..."}, {"x": "N C H W"}
_PAIR = {"a": "...", "b": "..."}
_CACHE = {"ends": "B", "cosines?": "...", "sines?": "...", "scale?": "D"}
OPERANDS: dict[str, dict[str, str]] = {
    "conv": {**_IMAGE, "weight": "K c kh kw", "bias?": "K", "residual?": "N K oh ow"},
    "dense": {"x": "N C", "weight": "C M", "bias?": "M"},
    "matmul": {"a": "i j ...", "b": "k l ..."},
    **dict.fromkeys((*ACTIVATIONS, "softmax", "reshape", "transpose", "slice"), _ANY),
    **dict.fromkeys(("max_pool", "average_pool", "global_average_pool", "lrn", "pad", "resize", "im2col"), _IMAGE),
    "concat": {},
    "add": _PAIR,
    "mul": _PAIR,
    "affine": {"x": "N C ...", "scale": "C", "shift": "C"},
    "instance_norm": {**_IMAGE, "scale": "C", "shift": "C"},
    "map": {"a?": "...", "b?": "...", "c?": "...", "d?": "..."},
    "take": {"x": "...", "table": "k"},
    "gather": {"x": "...", "indices": "..."},
    "put_rows": {"x": "...", "rows": "...", "position": "one"},
    "reduce": _ANY,
    "sort": {"x": "rows n"},
    "suppress": {"boxes": "batch n five", "order": "rows m", "valid": "rows one"},
    "append": {"past": "B H C D", "new": "...", **_CACHE},
    "attend": {"q": "...", "keys": "B H C D", "values": "B H C E", **_CACHE},
    "roi_align": {**_IMAGE, "boxes": "rows four", "pictures": "rows", "valid": "one"},
}
"""Operands of each canonical operation in their order, `?` where they may be absent, with the pattern of their shape
(`operands.py`). A concat has any number."""
POOLS = ("max_pool", "average_pool")
REDUCTIONS = ("sum", "mean", "max", "min", "prod", "argmax", "argmin", "last_argmax", "last_argmin")
"""Kinds of `reduce`; those of arguments give the place of the first, or last, largest or smallest element."""
MAX_TAKE_RANK = 8


def output_shape(node: Node, shapes: Mapping[str, Shape], *, ceil: bool = False) -> Shape:
    """Infer the shape of a canonical node's output from operands that fit each other.

    `ceil`: of a pooling, a last window may hang over the end. Raises ModelError that names the node, the operand, what
    was expected and found.
    """
    try:
        operands = _operands(node, shapes)
        bind(operands)
        _check_numbers(node.attributes)
        known = [shape for _, _, shape in operands if shape is not None]
        shape = _RULES.get(node.op, _same)(known, {**node.attributes, "ceil": ceil})
        for what, _, extents in (*operands, ("the result", "", shape)):
            if extents is not None and 0 in extents:
                raise ModelError(f"{what} of shape {extents} is empty")
        if node.op == "conv" and operands[3][2] not in (None, shape):
            raise ModelError(f"{operands[3][0]} has shape {operands[3][2]}; expected that of the result, {shape}")
    except ModelError as e:
        raise ModelError(f"node {node.name!r} ({node.op}): {e}") from e
    return shape


def _operands(node: Node, shapes: Mapping[str, Shape]) -> list[tuple[str, str, Shape | None]]:
    """Name, pattern and shape of each."""
    if node.op not in OPERANDS:
        raise ModelError(f"there is no such operation; there are {', '.join(OPERANDS)}")
    declared = OPERANDS[node.op] or {f"part {i}": "..." for i in range(max(1, len(node.inputs)))}
    if len(node.inputs) > len(declared):
        raise ModelError(f"{len(node.inputs)} operands, but there are only {', '.join(declared)}")
    found: list[tuple[str, str, Shape | None]] = []
    for index, (what, pattern) in enumerate(declared.items()):
        name = node.inputs[index] if index < len(node.inputs) else ""
        if not name and not what.endswith("?"):
            raise ModelError(f"{what} is missing")
        found.append((f"{what.rstrip('?')} {name!r}", pattern, shapes[name] if name else None))
    return found


_VALUES = ("value", "min", "max", "expression")
"""Attributes that hold values of elements."""


def _check_numbers(attributes: Attributes) -> None:
    """Attributes that a kernel can take: neither NaN nor beyond a 32-bit integer."""
    for name, value in attributes.items():
        for number in value if isinstance(value, tuple | list) else (value,):
            if isinstance(number, int) and abs(number) > LARGEST and name not in _VALUES:
                raise ModelError(f"{name} is {value}; at most {LARGEST} is supported")
            if isinstance(number, float) and isnan(number):
                raise ModelError(f"{name} is {value}; expected a number")


def _at_least(low: int, a: Attributes, *names: str) -> None:
    for name in names:
        if min(np.atleast_1d(a[name])) < low:
            raise ModelError(f"{name} is {a[name]}; expected at least {low}")


def _same(shapes: list[Shape], _: Attributes) -> Shape:
    return shapes[0]


def _conv(shapes: list[Shape], a: Attributes) -> Shape:
    (n, c, h, w), (k, per_group, kh, kw), groups = shapes[0], shapes[1], a["groups"]
    _at_least(1, a, "groups", "strides", "dilations")
    _at_least(0, a, "pads")
    if c % groups or k % groups:
        raise ModelError(f"{groups} groups do not divide {c} input and {k} output channels")
    if per_group * groups != c:
        raise ModelError(
            f"the weight has shape {shapes[1]}; expected (K, {c // groups}, kh, kw) for an input of {c} channels in "
            f"{groups} {'group' if groups == 1 else 'groups'}"
        )
    return (n, k, *window_shape((h, w), (kh, kw), a["strides"], a["pads"], dilations=a["dilations"]))


def _im2col(shapes: list[Shape], a: Attributes) -> Shape:
    n, c, h, w = shapes[0]
    _at_least(1, a, "kernel", "strides", "dilations")
    _at_least(0, a, "pads")
    oh, ow = window_shape((h, w), a["kernel"], a["strides"], a["pads"], dilations=a["dilations"])
    return (n, c * prod(a["kernel"]), oh, ow)


def _matmul(shapes: list[Shape], _: Attributes) -> Shape:
    a, b = shapes
    if (a[:-2] != b[:-2] and len(b) > 2) or a[-1] != b[-2]:
        raise ModelError(f"shapes {a} and {b} cannot be multiplied; expected (.., M, K) and (.., K, N) or (K, N)")
    return (*a[:-1], b[-1])


def _pool(shapes: list[Shape], a: Attributes) -> Shape:
    n, c, h, w = shapes[0]
    _at_least(1, a, "kernel", "strides")
    _at_least(0, a, "pads")
    return (n, c, *window_shape((h, w), a["kernel"], a["strides"], a["pads"], ceil=a["ceil"]))


def _concat(shapes: list[Shape], a: Attributes) -> Shape:
    axis, first = a["axis"], _axis_inside(shapes, a)
    rest = {(*shape[:axis], *shape[axis + 1 :]) for shape in shapes}
    if len(rest) != 1 or len({len(shape) for shape in shapes}) != 1:
        raise ModelError(f"shapes {shapes} cannot be joined along axis {axis}")
    return (*first[:axis], sum(shape[axis] for shape in shapes), *first[axis + 1 :])


def _binary(shapes: list[Shape], _: Attributes) -> Shape:
    """The second may be a constant that broadcasts; either may be first."""
    a, b = sorted(shapes, key=prod, reverse=True) if len(shapes[0]) == len(shapes[1]) else shapes
    aligned = (1,) * (len(a) - len(b)) + b
    if len(b) > len(a) or any(y not in (1, x) for x, y in zip(a, aligned, strict=True)):
        raise ModelError(f"an operand of shape {b} does not broadcast to {a}")
    return a


def _slice(shapes: list[Shape], a: Attributes) -> Shape:
    axis, start, stop = a["axis"], a["start"], a["stop"]
    shape = _axis_inside(shapes, a)
    if not 0 <= start < stop <= shape[axis]:
        raise ModelError(f"elements {start} to {stop} of axis {axis} are outside of {shape}")
    return (*shape[:axis], stop - start, *shape[axis + 1 :])


def _pad(shapes: list[Shape], a: Attributes) -> Shape:
    n, c, h, w = shapes[0]
    _at_least(0, a, "pads")
    top, left, bottom, right = a["pads"]
    if a["mode"] == "reflect" and not (max(top, bottom) < h and max(left, right) < w):
        raise ModelError(f"reflected pads {tuple(a['pads'])} must be smaller than the image {(h, w)}")
    return (n, c, h + top + bottom, w + left + right)


def _resize(shapes: list[Shape], a: Attributes) -> Shape:
    n, c, h, w = shapes[0]
    check_coordinates(a["mode"], a["coordinates"])
    if min(a["size"]) < 1:
        raise ModelError(f"{(h, w)} cannot be resized to {tuple(a['size'])}")
    return (n, c, *a["size"])


def _instance_norm(shapes: list[Shape], a: Attributes) -> Shape:
    if not 0 <= a["epsilon"] < inf:
        raise ModelError(f"epsilon is {a['epsilon']}; expected a finite number from 0 on")
    groups, channels = a.get("groups", 1), shapes[0][1]
    if groups < 1 or channels % groups:
        raise ModelError(f"{groups} groups do not divide {channels} channels")
    return shapes[0]


def _axis_inside(shapes: list[Shape], a: Attributes) -> Shape:
    if not 0 <= a["axis"] < len(shapes[0]):
        raise ModelError(f"axis {a['axis']} is outside of shape {shapes[0]}")
    return shapes[0]


def _lrn(shapes: list[Shape], a: Attributes) -> Shape:
    _at_least(1, a, "size")
    for name in ("alpha", "beta", "bias"):
        if not isfinite(a[name]):
            raise ModelError(f"{name} is {a[name]}; expected a finite number")
    return shapes[0]


def _reshape(shapes: list[Shape], a: Attributes) -> Shape:
    shape: Shape = tuple(a["shape"])
    if prod(shape) != prod(shapes[0]):
        raise ModelError(f"{shapes[0]} holds {prod(shapes[0])} elements and cannot become {shape}")
    return shape


def _transpose(shapes: list[Shape], a: Attributes) -> Shape:
    perm = a["perm"]
    if len(perm) > MAX_TRANSPOSE_RANK:
        raise ModelError(f"perm {tuple(perm)} has more than {MAX_TRANSPOSE_RANK} dimensions")
    if sorted(perm) != list(range(len(shapes[0]))):
        raise ModelError(f"perm {tuple(perm)} does not permute the axes of {shapes[0]}")
    return tuple(shapes[0][i] for i in perm)


def _map(shapes: list[Shape], a: Attributes) -> Shape:
    check_expression(a["expression"], len(shapes))
    try:
        return tuple(int(extent) for extent in np.broadcast_shapes(*shapes))
    except ValueError as e:
        raise ModelError(f"shapes {shapes} do not broadcast to each other") from e


def _take(shapes: list[Shape], a: Attributes) -> Shape:
    shape: Shape = tuple(a["shape"])
    if len(shape) > MAX_TAKE_RANK:
        raise ModelError(f"a result of shape {shape} has more than {MAX_TAKE_RANK} dimensions")
    if shapes[1] != (sum(shape),) or len(a["strides"]) != len(shape):
        raise ModelError(f"a table of {shapes[1]} and strides {a['strides']} do not fit a result of shape {shape}")
    return shape


def _gather(shapes: list[Shape], a: Attributes) -> Shape:
    x, axis = _axis_inside(shapes, a), a["axis"]
    return (*x[:axis], *shapes[1], *x[axis + 1 :])


def _put_rows(shapes: list[Shape], a: Attributes) -> Shape:
    x, rows, axis = _axis_inside(shapes, a), shapes[1], a["axis"]
    if len(rows) != len(x) or rows[axis] > x[axis] or any(rows[k] != x[k] for k in range(len(x)) if k != axis):
        raise ModelError(f"rows of shape {rows} are no part of {x} along axis {axis}")
    return x


def _reduce(shapes: list[Shape], a: Attributes) -> Shape:
    start, stop, shape = a["start"], a["stop"], shapes[0]
    if a["kind"] not in REDUCTIONS or not 0 <= start < stop <= len(shape):
        raise ModelError(f"{a['kind']} over axes {start} to {stop} of {shape} is not known")
    if a.get("squared") and a["kind"] not in ("sum", "mean"):
        raise ModelError(f"{a['kind']} of squares is not known; there are sum and mean")
    return tuple(1 if start <= axis < stop else extent for axis, extent in enumerate(shape))


def _sort(shapes: list[Shape], a: Attributes) -> Shape:
    rows, n = shapes[0]
    if not 0 < a["k"] <= n or a["gives"] not in GIVES:
        raise ModelError(f"{a['k']} {a['gives']} of {n} elements; expected 1 to {n} {' or '.join(GIVES)}")
    return (rows, a["k"])


def _suppress(shapes: list[Shape], a: Attributes) -> Shape:
    (batch, _, numbers), (rows, _), (_, one) = shapes
    if numbers != 5 or one != 1 or rows % batch:
        raise ModelError(f"shapes {shapes} do not fit; expected (batch, n, 5), (rows, m) and (rows, 1)")
    _at_least(1, a, "rounds")
    return (rows, a["rounds"])


def _roi_align(shapes: list[Shape], a: Attributes) -> Shape:
    (_, c, _, _), (rows, numbers), _, (one,) = shapes
    if numbers != 4 or one != 1 or a["kind"] not in KINDS:
        raise ModelError(
            f"{a['kind']} of shapes {shapes} does not fit; expected (n, c, h, w), (rows, 4), (rows) and (1)"
        )
    _at_least(1, a, "points", "size")
    return (rows, c, *a["size"])


_RULES: dict[str, Callable[[list[Shape], Attributes], Shape]] = {
    "conv": _conv,
    "im2col": _im2col,
    "dense": lambda shapes, _: (shapes[0][0], shapes[1][1]),
    "matmul": _matmul,
    "max_pool": _pool,
    "average_pool": _pool,
    "global_average_pool": lambda shapes, _: (*shapes[0][:2], 1, 1),
    "concat": _concat,
    "add": _binary,
    "mul": _binary,
    "instance_norm": _instance_norm,
    "softmax": _axis_inside,
    "lrn": _lrn,
    "reshape": _reshape,
    "transpose": _transpose,
    "slice": _slice,
    "pad": _pad,
    "resize": _resize,
    "map": _map,
    "take": _take,
    "gather": _gather,
    "put_rows": _put_rows,
    "reduce": _reduce,
    "sort": _sort,
    "suppress": _suppress,
    "roi_align": _roi_align,
    "append": partial(cached_shape, "append"),
    "attend": partial(cached_shape, "attend"),
}
