"""Static shapes: what each canonical operation (`graph.py`) makes of the shapes of its inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

from .errors import ModelError
from .graph import Node
from .resampling import check_coordinates

Shape = tuple[int, ...]
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


def output_shape(node: Node, shapes: Mapping[str, Shape]) -> Shape:
    """Infer the shape of a canonical node's output. Raises ModelError that names the node.

    Pooling is taken without ceil_mode: where the model has it, whoever emits the node sets the shape.
    """
    known = [shapes[name] for name in node.inputs if name]
    try:
        return _RULES.get(node.op, _same)(known, node.attributes)
    except ModelError as e:
        raise ModelError(f"node {node.name!r} ({node.op}): {e}") from e


def _same(shapes: list[Shape], _: Attributes) -> Shape:
    return shapes[0]


def _rank(shape: Shape, rank: int, what: str) -> Shape:
    if len(shape) != rank:
        raise ModelError(f"{what} must have {rank} dimensions, but its shape is {shape}")
    return shape


def _conv(shapes: list[Shape], a: Attributes) -> Shape:
    n, c, h, w = _rank(shapes[0], 4, "the input")
    k, per_group, kh, kw = _rank(shapes[1], 4, "the weight")
    groups = a["groups"]
    if c % groups or k % groups or per_group * groups != c:
        raise ModelError(
            f"{groups} groups do not divide {c} input and {k} output channels with a weight of shape {shapes[1]}; "
            "expected (K, C/groups, kh, kw)"
        )
    return (n, k, *window_shape((h, w), (kh, kw), a["strides"], a["pads"], dilations=a["dilations"]))


def _dense(shapes: list[Shape], _: Attributes) -> Shape:
    n, c = _rank(shapes[0], 2, "the input")
    rows, m = _rank(shapes[1], 2, "the weight")
    if rows != c:
        raise ModelError(f"an input of shape {shapes[0]} does not fit a weight of shape {shapes[1]}")
    return (n, m)


def _matmul(shapes: list[Shape], _: Attributes) -> Shape:
    a, b = shapes
    if len(a) < 2 or a[:-2] != b[:-2] or a[-1] != b[-2]:
        raise ModelError(f"shapes {a} and {b} cannot be multiplied; expected (.., M, K) and (.., K, N)")
    return (*a[:-1], b[-1])


def _pool(shapes: list[Shape], a: Attributes) -> Shape:
    n, c, h, w = _rank(shapes[0], 4, "the input")
    return (n, c, *window_shape((h, w), a["kernel"], a["strides"], a["pads"]))


def _global_pool(shapes: list[Shape], _: Attributes) -> Shape:
    n, c, _h, _w = _rank(shapes[0], 4, "the input")
    return (n, c, 1, 1)


def _concat(shapes: list[Shape], a: Attributes) -> Shape:
    axis = a["axis"]
    first = shapes[0]
    rest = {(*shape[:axis], *shape[axis + 1 :]) for shape in shapes}
    if axis >= len(first) or len(rest) != 1 or len({len(shape) for shape in shapes}) != 1:
        raise ModelError(f"shapes {shapes} cannot be joined along axis {axis}")
    return (*first[:axis], sum(shape[axis] for shape in shapes), *first[axis + 1 :])


def _binary(shapes: list[Shape], _: Attributes) -> Shape:
    a, b = shapes
    aligned = (1,) * (len(a) - len(b)) + b
    if len(b) > len(a) or any(y not in (1, x) for x, y in zip(a, aligned, strict=True)):
        raise ModelError(f"an operand of shape {b} does not broadcast to {a}")
    return a


def _affine(shapes: list[Shape], _: Attributes) -> Shape:
    x, scale, shift = shapes
    if len(x) < 2 or scale != (x[1],) or shift != (x[1],):
        raise ModelError(f"scale {scale} and shift {shift} do not fit the channels of {x}")
    return x


def _slice(shapes: list[Shape], a: Attributes) -> Shape:
    axis, start, stop = a["axis"], a["start"], a["stop"]
    shape = _axis_inside(shapes, a)
    if not 0 <= start < stop <= shape[axis]:
        raise ModelError(f"elements {start} to {stop} of axis {axis} are outside of {shape}")
    return (*shape[:axis], stop - start, *shape[axis + 1 :])


def _pad(shapes: list[Shape], a: Attributes) -> Shape:
    n, c, h, w = _rank(shapes[0], 4, "the input")
    top, left, bottom, right = a["pads"]
    if a["mode"] == "reflect" and not (max(top, bottom) < h and max(left, right) < w):
        raise ModelError(f"reflected pads {tuple(a['pads'])} must be smaller than the image {(h, w)}")
    return (n, c, h + top + bottom, w + left + right)


def _resize(shapes: list[Shape], a: Attributes) -> Shape:
    n, c, h, w = _rank(shapes[0], 4, "the input")
    check_coordinates(a["mode"], a["coordinates"])
    if min(a["size"]) < 1:
        raise ModelError(f"{(h, w)} cannot be resized to {tuple(a['size'])}")
    return (n, c, *a["size"])


def _instance_norm(shapes: list[Shape], a: Attributes) -> Shape:
    _rank(shapes[0], 4, "the input")
    return _affine(shapes, a)


def _axis_inside(shapes: list[Shape], a: Attributes) -> Shape:
    if not 0 <= a["axis"] < len(shapes[0]):
        raise ModelError(f"axis {a['axis']} is outside of shape {shapes[0]}")
    return shapes[0]


def _lrn(shapes: list[Shape], _: Attributes) -> Shape:
    return _rank(shapes[0], 4, "the input")


def _reshape(shapes: list[Shape], a: Attributes) -> Shape:
    shape: Shape = tuple(a["shape"])
    if prod(shape) != prod(shapes[0]):
        raise ModelError(f"{shapes[0]} holds {prod(shapes[0])} elements and cannot become {shape}")
    return shape


def _transpose(shapes: list[Shape], a: Attributes) -> Shape:
    perm = a["perm"]
    if sorted(perm) != list(range(len(shapes[0]))):
        raise ModelError(f"perm {tuple(perm)} does not permute the axes of {shapes[0]}")
    return tuple(shapes[0][i] for i in perm)


_RULES: dict[str, Callable[[list[Shape], Attributes], Shape]] = {
    "conv": _conv,
    "dense": _dense,
    "matmul": _matmul,
    "max_pool": _pool,
    "average_pool": _pool,
    "global_average_pool": _global_pool,
    "concat": _concat,
    "add": _binary,
    "mul": _binary,
    "affine": _affine,
    "instance_norm": _instance_norm,
    "softmax": _axis_inside,
    "lrn": _lrn,
    "reshape": _reshape,
    "transpose": _transpose,
    "slice": _slice,
    "pad": _pad,
    "resize": _resize,
}
