"""What an operator is given at random: ranks, shapes, broadcasts, attributes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

MOST_ELEMENTS = 4000

Array = np.ndarray[Any, Any]
Attributes = dict[str, Any]
Drawn = tuple[list[Array], Attributes]
"""Inputs, in their order, and attributes."""
Draw = Callable[[np.random.Generator], Drawn]


def shape_of(rng: np.random.Generator, ranks: Sequence[int] = (0, 1, 2, 3, 4, 5), largest: int = 7) -> tuple[int, ...]:
    rank = int(rng.choice(ranks))
    shape = tuple(int(extent) for extent in rng.integers(1, largest, rank))
    return shape if np.prod(shape, dtype=np.int64) <= MOST_ELEMENTS else shape_of(rng, ranks, max(2, largest - 1))


def normal(rng: np.random.Generator, *shape: int) -> Array:
    return np.asarray(rng.standard_normal(shape), np.float32)


def partner(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape that broadcasts with another: some axes of one element, some missing in front."""
    kept = [1 if rng.random() < 0.35 else extent for extent in shape]
    return tuple(kept[int(rng.integers(0, len(kept) + 1)) if rng.random() < 0.4 else 0 :])


def ints(*values: int) -> Array:
    return np.asarray(values, np.int64)


def _axes(rng: np.random.Generator, rank: int, least: int = 1) -> list[int]:
    chosen = rng.permutation(rank)[: int(rng.integers(least, rank + 1))]
    return [int(axis) - (rank if rng.random() < 0.5 else 0) for axis in chosen]


def unary(positive: bool = False, most: float = 1.0, **attributes: Sequence[Any]) -> Draw:
    def draw(rng: np.random.Generator) -> Drawn:
        x = normal(rng, *shape_of(rng)) * np.float32(3 * most)
        x = np.abs(x) + np.float32(0.01) if positive else x
        x = np.tanh(x) * np.float32(0.99 * most) if most < 1 else x
        return [np.asarray(x)], {key: values[int(rng.integers(len(values)))] for key, values in attributes.items()}

    return draw


def binary(*, positive: bool = False, whole: bool = False, one_way: bool = False, **attributes: Any) -> Draw:
    def draw(rng: np.random.Generator) -> Drawn:
        shape = shape_of(rng)
        a, b = normal(rng, *(shape if one_way else partner(rng, shape))), normal(rng, *partner(rng, shape))
        if positive:
            a, b = np.abs(a) + np.float32(0.1), b
        if whole:
            a, b = np.round(a), np.round(b)
        return [np.asarray(a), np.asarray(b)], dict(attributes)

    return draw


def truths(rng: np.random.Generator) -> Drawn:
    shape = shape_of(rng)
    return [np.asarray(rng.random(partner(rng, shape)) < 0.5), np.asarray(rng.random(partner(rng, shape)) < 0.5)], {}


def where(rng: np.random.Generator) -> Drawn:
    shape = shape_of(rng)
    condition = np.asarray(rng.random(partner(rng, shape)) < 0.5)
    return [condition, normal(rng, *partner(rng, shape)), normal(rng, *partner(rng, shape))], {}


def reduction(by_attribute: bool = False) -> Draw:
    def draw(rng: np.random.Generator) -> Drawn:
        x = normal(rng, *shape_of(rng, (1, 2, 3, 4, 5)))
        axes, attributes = _axes(rng, x.ndim), {"keepdims": int(rng.integers(2))}
        if by_attribute:
            return [x], {**attributes, "axes": axes}
        return [x, ints(*axes)], attributes

    return draw


def along(ranks: Sequence[int] = (1, 2, 3, 4, 5), **attributes: Sequence[Any]) -> Draw:
    def draw(rng: np.random.Generator) -> Drawn:
        x = normal(rng, *shape_of(rng, ranks))
        drawn = {key: values[int(rng.integers(len(values)))] for key, values in attributes.items()}
        return [x], {"axis": int(rng.integers(-x.ndim, x.ndim)), **drawn}

    return draw


def layer_norm(rng: np.random.Generator) -> Drawn:
    x = normal(rng, *shape_of(rng, (1, 2, 3, 4)))
    axis = int(rng.integers(-x.ndim, x.ndim))
    inner = x.shape[axis:] if axis >= 0 else x.shape[x.ndim + axis :]
    return [x, normal(rng, *inner), *([normal(rng, *inner)] if rng.random() < 0.5 else [])], {"axis": axis}


def channel_norm(kind: str) -> Draw:
    def draw(rng: np.random.Generator) -> Drawn:
        groups = int(rng.integers(1, 4))
        c = groups * int(rng.integers(1, 5))
        x = normal(rng, int(rng.integers(1, 3)), c, *shape_of(rng, (1, 2, 3), 6))
        scale, shift = normal(rng, c), normal(rng, c)
        if kind == "batch":
            return [x, scale, shift, normal(rng, c), np.abs(normal(rng, c)) + np.float32(0.1)], {}
        return [x, scale, shift], {"epsilon": 1e-3}

    return draw


def transpose(rng: np.random.Generator) -> Drawn:
    x = normal(rng, *shape_of(rng, (1, 2, 3, 4, 5, 6), 5))
    return [x], {"perm": [int(axis) for axis in rng.permutation(x.ndim)]}


def slices(rng: np.random.Generator) -> Drawn:
    x = normal(rng, *shape_of(rng, (1, 2, 3, 4)))
    axes = _axes(rng, x.ndim)
    starts, ends, steps = [], [], []
    for axis in axes:
        extent, step = x.shape[axis], int(rng.choice([1, 1, 2, 3, -1, -2]))
        first = int(rng.integers(0, extent))
        last = int(rng.integers(first, extent)) if step > 0 else int(rng.integers(0, first + 1))
        starts.append(first - (extent if rng.random() < 0.3 else 0))
        ends.append(last + 1 if step > 0 else last - 1 if last else -1000)
        steps.append(step)
    return [x, ints(*starts), ints(*ends), ints(*axes), ints(*steps)], {}


def pad(rng: np.random.Generator) -> Drawn:
    mode = str(rng.choice(["constant", "reflect", "edge", "wrap"]))
    x = normal(rng, *shape_of(rng, (1, 2, 3, 4)))
    most = [max(0, extent - 1) if mode in ("reflect", "wrap") else 3 for extent in x.shape]
    pads = [int(rng.integers(0, extent + 1)) for extent in (*most, *most)]
    return [x, ints(*pads), *([normal(rng)] if mode == "constant" else [])], {"mode": mode}


def tile(rng: np.random.Generator) -> Drawn:
    x = normal(rng, *shape_of(rng, (1, 2, 3, 4), 5))
    return [x, ints(*(int(n) for n in rng.integers(1, 4, x.ndim)))], {}


def expand(rng: np.random.Generator) -> Drawn:
    shape = shape_of(rng, (1, 2, 3, 4))
    return [normal(rng, *partner(rng, shape)), ints(*shape)], {}


def gather(rng: np.random.Generator) -> Drawn:
    x = normal(rng, *shape_of(rng, (1, 2, 3, 4)))
    axis = int(rng.integers(-x.ndim, x.ndim))
    extent = x.shape[axis]
    return [x, np.asarray(rng.integers(-extent, extent, shape_of(rng, (0, 1, 2), 5)))], {"axis": axis}


def gather_elements(rng: np.random.Generator) -> Drawn:
    x = normal(rng, *shape_of(rng, (1, 2, 3)))
    axis = int(rng.integers(0, x.ndim))
    shape = list(x.shape)
    shape[axis] = int(rng.integers(1, 6))
    return [x, np.asarray(rng.integers(0, x.shape[axis], shape))], {"axis": axis}


def gather_nd(rng: np.random.Generator) -> Drawn:
    x = normal(rng, *shape_of(rng, (1, 2, 3, 4)))
    batch = int(rng.integers(0, x.ndim))
    depth = int(rng.integers(1, x.ndim - batch + 1))
    lead = (*x.shape[:batch], *shape_of(rng, (0, 1, 2), 4))
    places = [rng.integers(-extent, extent, lead) for extent in x.shape[batch : batch + depth]]
    return [x, np.asarray(np.stack(places, -1), np.int64)], {"batch_dims": batch}


def scatter_elements(rng: np.random.Generator) -> Drawn:
    """Places may be named several times where it does not matter in which order."""
    (x, places), found = gather_elements(rng)
    how = str(rng.choice(["none", "add", "mul", "max", "min"]))
    axis = found["axis"]
    if how == "none":
        count = min(places.shape[axis], x.shape[axis])
        shape = [count if k == axis else extent for k, extent in enumerate(x.shape)]
        places = np.argsort(normal(rng, *x.shape), axis)[tuple(slice(extent) for extent in shape)]
    return [x, places, normal(rng, *places.shape)], {"axis": axis, "reduction": how}


def top_k(rng: np.random.Generator) -> Drawn:
    """Of equal numbers too."""
    x = normal(rng, *shape_of(rng, (1, 2, 3, 4), 12))
    x = np.round(x) if rng.random() < 0.5 else x
    axis = int(rng.integers(-x.ndim, x.ndim))
    return [x, ints(int(rng.integers(1, x.shape[axis] + 1)))], {"axis": axis, "largest": int(rng.integers(2))}


def roi_align(rng: np.random.Generator) -> Drawn:
    n, c, h, w, count = (int(extent) for extent in rng.integers(1, 8, 5))
    boxes = rng.uniform(-3, 16, (count, 4)).astype(np.float32)
    found = {key: int(rng.integers(1, 4)) for key in ("output_height", "output_width", "sampling_ratio")}
    modes = {"coordinate_transformation_mode": ("half_pixel", "output_half_pixel"), "mode": ("avg", "max")}
    chosen = {key: str(rng.choice(words)) for key, words in modes.items()}
    scale = float(rng.choice([0.25, 0.5, 1.0]))
    return [normal(rng, n, c, h, w), boxes, rng.integers(0, n, count)], {**found, **chosen, "spatial_scale": scale}


def grid_sample(rng: np.random.Generator) -> Drawn:
    """At places that are no ends of a step, where rounding would choose."""
    rank = int(rng.choice([2, 2, 3]))
    n, c, *extents = (int(extent) for extent in rng.integers(1, 6, 2 + rank))
    mode = str(rng.choice(["nearest", "linear", "cubic"] if rank == 2 else ["nearest", "linear"]))
    found = {"mode": mode, "padding_mode": str(rng.choice(["zeros", "border", "reflection"]))}
    found["align_corners"] = int(rng.integers(2))
    if found["align_corners"] and found["padding_mode"] == "reflection":
        extents = [extent + 1 for extent in extents]  # onnxruntime divides by the length
    lengths = np.asarray(extents[::-1]) - found["align_corners"]
    # (eighths of a pixel that are odd, from the first one on) as coordinates from -1 to 1
    at = (2 * rng.integers(-12, 4 * 8, (n, *rng.integers(1, 5, rank), rank)) + 1) / 8
    grid = (at + (0 if found["align_corners"] else 0.5)) * 2 / np.maximum(lengths, 1) - 1
    return [normal(rng, n, c, *extents), np.asarray(grid, np.float32)], found


def concat(rng: np.random.Generator) -> Drawn:
    shape = list(shape_of(rng, (1, 2, 3, 4)))
    axis = int(rng.integers(0, len(shape)))
    parts = []
    for _ in range(int(rng.integers(1, 4))):
        shape[axis] = int(rng.integers(1, 9))
        parts.append(normal(rng, *shape))
    return parts, {"axis": axis - (len(shape) if rng.random() < 0.3 else 0)}


def windows(kind: str) -> Draw:
    def draw(rng: np.random.Generator) -> Drawn:
        rank = int(rng.choice([1, 2, 2, 3]))
        kernel = [int(k) for k in rng.integers(1, 4, rank)]
        groups = int(rng.choice([1, 1, 2, 3]))
        c = groups * int(rng.integers(1, 5))
        extents = [int(extent) for extent in rng.integers(5, 10 if rank < 3 else 7, rank)]
        x = normal(rng, int(rng.integers(1, 3)), c, *extents)
        found: Attributes = {"strides": [int(s) for s in rng.integers(1, 4, rank)]}
        if rng.random() < 0.75:
            found["pads"] = [int(rng.integers(0, k)) for k in (*kernel, *kernel)]
        elif kind != "transposed":
            found["auto_pad"] = str(rng.choice(["SAME_UPPER", "SAME_LOWER", "VALID"]))
            # of windows with gaps between them onnxruntime leaves out the first elements
            found["strides"] = [min(stride, k) for stride, k in zip(found["strides"], kernel, strict=True)]
        if kind in ("conv", "transposed", "max") and rng.random() < 0.4 and "auto_pad" not in found:
            found["dilations"] = [int(d) for d in rng.integers(1, 3, rank)]
        if kind in ("max", "average"):
            found["kernel_shape"] = kernel
            if "auto_pad" not in found:
                found["ceil_mode"] = int(rng.integers(2))
            if kind == "average":
                found["count_include_pad"] = int(rng.integers(2))
            return [x], found
        found["group"] = groups
        m = int(rng.integers(1, 5))
        weight = normal(rng, groups * m, c // groups, *kernel) if kind == "conv" else normal(rng, c, m, *kernel)
        return [x, weight, *([normal(rng, groups * m)] if rng.random() < 0.5 else [])], found

    return draw


def places_of_maxima(rng: np.random.Generator) -> Drawn:
    """A MaxPool of which the second output is read, too; many numbers are equal."""
    (x,), found = windows("max")(rng)
    return [np.round(x) if rng.random() < 0.5 else x], found


def unpool(rng: np.random.Generator) -> Drawn:
    """No place twice."""
    rank = int(rng.choice([1, 2, 2, 3]))
    n, c, *extents = (int(extent) for extent in rng.integers(1, 4, 2 + rank))
    kernel = [int(k) for k in rng.integers(1, 4, rank)]
    strides = [int(k) for k in rng.integers(1, 4, rank)]
    sizes = [(extent - 1) * stride + k for extent, stride, k in zip(extents, strides, kernel, strict=True)]
    x = normal(rng, n, c, *extents)
    places = rng.permutation(n * c * int(np.prod(sizes)))[: x.size].reshape(x.shape)
    return [x, places], {"kernel_shape": kernel, "strides": strides}


def moved_taps(rng: np.random.Generator) -> Drawn:
    groups, parts = int(rng.integers(1, 3)), int(rng.integers(1, 3))
    n, c, m = int(rng.integers(1, 3)), groups * parts * int(rng.integers(1, 3)), groups * int(rng.integers(1, 3))
    kernel, extents, strides, dilations = (rng.integers(low, high, 2) for low, high in ((1, 4), (5, 9), (1, 3), (1, 3)))
    pads = rng.integers(0, 3, 4)
    counts = (extents + pads[:2] + pads[2:] - dilations * (kernel - 1) - 1) // strides + 1
    taps = parts * int(np.prod(kernel))
    inputs = [normal(rng, n, c, *extents), normal(rng, m, c // groups, *kernel), normal(rng, n, 2 * taps, *counts)]
    more = [normal(rng, m), normal(rng, n, taps, *counts)][: int(rng.integers(3))]
    found = {"group": groups, "offset_group": parts, "strides": strides, "dilations": dilations, "pads": pads}
    return [*inputs, *more], {key: np.asarray(value).tolist() for key, value in found.items()}


def tensor_scatter(rng: np.random.Generator) -> Drawn:
    x, mode = normal(rng, *shape_of(rng, (3, 4), 6)), str(rng.choice(["linear", "circular"]))
    count = int(rng.integers(1, x.shape[-2] + 1))
    last = x.shape[-2] - (count if mode == "linear" else 1)
    begins = np.asarray(rng.integers(0, last + 1, x.shape[0]), np.int64)
    return [x, normal(rng, *x.shape[:-2], count, x.shape[-1]), begins], {"mode": mode}


def bits(rng: np.random.Generator) -> Drawn:
    kind, shape = rng.choice([np.int8, np.uint8, np.int16, np.uint16, np.int32, np.int64]), shape_of(rng)
    low, high = max(np.iinfo(kind).min, -(1 << 24)), min(np.iinfo(kind).max, 1 << 24)
    return [np.asarray(rng.integers(low, high + 1, partner(rng, shape)), kind) for _ in range(2)], {}


def flipped(rng: np.random.Generator) -> Drawn:
    return bits(rng)[0][:1], {}


def shift(rng: np.random.Generator) -> Drawn:
    shape = shape_of(rng)
    x = np.asarray(rng.integers(0, 256, partner(rng, shape)), np.uint8)
    by = np.asarray(rng.integers(0, 8, partner(rng, shape)), np.uint8)
    return [x, by], {"direction": str(rng.choice(["LEFT", "RIGHT"]))}


def squares(rng: np.random.Generator) -> Drawn:
    n = int(rng.integers(1, 7))
    return [normal(rng, *shape_of(rng, (0, 1, 2), 4), n, n)], {}


def matmul(rng: np.random.Generator) -> Drawn:
    lead = shape_of(rng, (0, 1, 2), 4)
    m, k, n = (int(extent) for extent in rng.integers(1, 20, 3))
    a = normal(rng, *partner(rng, lead), m, k) if rng.random() < 0.85 else normal(rng, k)
    b = normal(rng, *partner(rng, lead), k, n) if rng.random() < 0.85 else normal(rng, k)
    return [a, b], {}


def gemm(rng: np.random.Generator) -> Drawn:
    m, k, n = (int(extent) for extent in rng.integers(1, 20, 3))
    found = {"transA": int(rng.integers(2)), "transB": int(rng.integers(2)), "alpha": 0.5, "beta": 2.0}
    a, b = normal(rng, *((k, m) if found["transA"] else (m, k))), normal(rng, *((n, k) if found["transB"] else (k, n)))
    return [a, b, *([normal(rng, *partner(rng, (m, n)))] if rng.random() < 0.7 else [])], found


def resize(rng: np.random.Generator) -> Drawn:
    x = normal(rng, 1, int(rng.integers(1, 4)), *(int(extent) for extent in rng.integers(2, 8, 2)))
    mode = str(rng.choice(["nearest", "linear", "cubic"]))
    found: Attributes = {"mode": mode}
    ways = ["half_pixel", "asymmetric", "pytorch_half_pixel", *(["align_corners"] if mode != "nearest" else [])]
    found["coordinate_transformation_mode"] = str(rng.choice(ways))
    if mode == "nearest":
        found["nearest_mode"] = str(rng.choice(["round_prefer_floor", "floor", "ceil", "round_prefer_ceil"]))
    size = ints(1, x.shape[1], *(int(extent) for extent in rng.integers(2, 14, 2)))
    return [x, np.zeros(0, np.float32), np.zeros(0, np.float32), size], found


def blocks(to_depth: bool) -> Draw:
    def draw(rng: np.random.Generator) -> Drawn:
        size = int(rng.integers(1, 4))
        n, c, h, w = (int(extent) for extent in rng.integers(1, 4, 4))
        if to_depth:
            return [normal(rng, n, c, h * size, w * size)], {"blocksize": size}
        return [normal(rng, n, c * size * size, h, w)], {"blocksize": size, "mode": str(rng.choice(["DCR", "CRD"]))}

    return draw


def cumulated(rng: np.random.Generator) -> Drawn:
    x = normal(rng, *shape_of(rng, (1, 2, 3)))
    axis = np.asarray(int(rng.integers(-x.ndim, x.ndim)), np.int64)
    return [x, axis], {"exclusive": int(rng.integers(2)), "reverse": int(rng.integers(2))}


def triangle(rng: np.random.Generator) -> Drawn:
    x = normal(rng, *shape_of(rng, (2, 3, 4)))
    return [x, np.asarray(int(rng.integers(-3, 4)), np.int64)], {"upper": int(rng.integers(2))}


def clip(rng: np.random.Generator) -> Drawn:
    return [normal(rng, *shape_of(rng)), np.float32(-0.5), np.asarray(np.float32(rng.random()))], {}


_EQUATIONS = (("ij,jk->ik", ("ij", "jk")), ("bij,bjk->bik", ("bij", "bjk")), ("bhid,bhjd->bhij", ("bhid", "bhjd")),
              ("ij->ji", ("ij",)), ("ij->j", ("ij",)), ("i,j->ij", ("i", "j")),
              ("bij,jk->bik", ("bij", "jk")))  # fmt: skip


def einsum(rng: np.random.Generator) -> Drawn:
    equation, terms = _EQUATIONS[int(rng.integers(len(_EQUATIONS)))]
    extents = {letter: int(rng.integers(1, 6)) for letter in "bhijkd"}
    return [normal(rng, *(extents[letter] for letter in term)) for term in terms], {"equation": equation}


_KINDS = (np.int8, np.uint8)


def _scale(rng: np.random.Generator, *shape: int) -> Array:
    return np.asarray(rng.uniform(0.01, 0.1, shape), np.float32)


def _whole(rng: np.random.Generator, kind: Any, *shape: int) -> Array:
    return np.asarray(rng.integers(np.iinfo(kind).min, np.iinfo(kind).max + 1, shape), kind)


def linear(dequantize: bool) -> Draw:
    """By one scale, by one for each place along an axis; with and without a zero point."""

    def draw(rng: np.random.Generator) -> Drawn:
        shape, kind = shape_of(rng, (1, 2, 3, 4)), _KINDS[int(rng.integers(2))]
        axis = int(rng.integers(len(shape)))
        many = (shape[axis],) if rng.random() < 0.5 else ()
        x = _whole(rng, kind, *shape) if dequantize else 4 * normal(rng, *shape)
        zero = [_whole(rng, kind, *many)] if rng.random() < 0.7 else []
        return [x, _scale(rng, *many), *zero], {"axis": axis - (len(shape) if rng.random() < 0.5 else 0)}

    return draw


def integer_product(scaled: bool) -> Draw:
    """Of whole numbers, with scales or without; by columns of the second."""

    def draw(rng: np.random.Generator) -> Drawn:
        m, k, n = (int(extent) for extent in rng.integers(1, 20, 3))
        many = (n,) if rng.random() < 0.5 else ()
        first, second = (np.uint8, _KINDS[int(rng.integers(2))])
        a, b = _whole(rng, first, m, k), _whole(rng, second, k, n)
        zeros = _whole(rng, first), _whole(rng, second, *many)
        if not scaled:
            return [a, b, *zeros], {}
        return [a, _scale(rng), zeros[0], b, _scale(rng, *many), zeros[1], 9 * _scale(rng), _whole(rng, first)], {}

    return draw


def integer_window(scaled: bool) -> Draw:
    """As a convolution's; of a filter each its scale."""

    def draw(rng: np.random.Generator) -> Drawn:
        (x, weight, *bias), found = windows("conv")(rng)
        m, kind = weight.shape[0], _KINDS[int(rng.integers(2))]
        x, weight = _whole(rng, np.uint8, *x.shape), _whole(rng, kind, *weight.shape)
        off = _whole(rng, np.uint8)
        if not scaled:
            return [x, weight, off, np.zeros((), kind)], found
        scales = _scale(rng, *((m,) if rng.random() < 0.5 else ()))
        more = [np.asarray(rng.integers(-5000, 5000, m), np.int32)] if bias else []
        zeros = np.zeros(scales.shape, kind)
        return [x, _scale(rng), off, weight, scales, zeros, 9 * _scale(rng), _whole(rng, np.uint8), *more], found

    return draw


OPERATORS: dict[str, Draw] = {
    **dict.fromkeys(("Abs", "Asinh", "Atan", "Ceil", "Cos", "Erf", "Exp", "Floor", "HardSwish", "Identity", "IsNaN",
                     "Mish", "Neg", "Relu", "Round", "Sigmoid", "Sign", "Sin", "Softplus", "Softsign",
                     "Tanh"), unary()),
    **dict.fromkeys(("Log", "Sqrt", "Reciprocal"), unary(positive=True)),
    **dict.fromkeys(("Acos", "Asin", "Atanh", "Tan"), unary(most=0.9)),
    "Sinh": unary(), "Cosh": unary(),
    "Celu": unary(alpha=(0.5, 2.0)), "Elu": unary(alpha=(0.5, 2.0)), "Selu": unary(),
    "LeakyRelu": unary(alpha=(0.1, 0.5)),
    "ThresholdedRelu": unary(alpha=(0.5, 1.0)), "Shrink": unary(lambd=(0.5, 1.0), bias=(0.0, 0.3)),
    "HardSigmoid": unary(alpha=(0.2, 0.3), beta=(0.5, 0.1)), "Gelu": unary(approximate=("none", "tanh")),
    **dict.fromkeys(("Add", "Div", "Max", "Min", "Mul", "Sub", "Sum", "Mean"), binary()),
    **dict.fromkeys(("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"), binary(whole=True)),
    "Pow": binary(positive=True), "PRelu": binary(one_way=True), "Mod": binary(fmod=1),
    **dict.fromkeys(("And", "Or", "Xor"), truths),
    "Where": where, "Clip": clip,
    **dict.fromkeys(("ReduceL1", "ReduceL2", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin",
                     "ReduceProd", "ReduceSumSquare"), reduction()),
    "ReduceSum": reduction(),
    **dict.fromkeys(("Softmax", "LogSoftmax", "Hardmax"), along()),
    **dict.fromkeys(("ArgMax", "ArgMin"), along(keepdims=(0, 1), select_last_index=(0, 1))),
    "Flatten": along(), "LpNormalization": along(p=(1, 2)),
    "LayerNormalization": layer_norm, "InstanceNormalization": channel_norm("instance"),
    "BatchNormalization": channel_norm("batch"),
    "Transpose": transpose, "Slice": slices, "Pad": pad, "Tile": tile, "Expand": expand, "Gather": gather,
    "GatherElements": gather_elements, "GatherND": gather_nd, "ScatterElements": scatter_elements,
    "TopK": top_k, "GridSample": grid_sample, "RoiAlign": roi_align, "Concat": concat, "Conv": windows("conv"),
    "ConvTranspose": windows("transposed"),
    "MaxPool": windows("max"), "AveragePool": windows("average"), "MatMul": matmul, "Gemm": gemm, "Resize": resize,
    "DepthToSpace": blocks(to_depth=False), "SpaceToDepth": blocks(to_depth=True), "CumSum": cumulated,
    "CumProd": cumulated, "DeformConv": moved_taps, "TensorScatter": tensor_scatter,
    "Trilu": triangle, "Det": squares, "MaxPool places": places_of_maxima, "MaxUnpool": unpool,
    **dict.fromkeys(("BitwiseAnd", "BitwiseOr", "BitwiseXor"), bits), "BitwiseNot": flipped, "BitShift": shift,
    "Einsum": einsum,
    "QuantizeLinear": linear(dequantize=False), "DequantizeLinear": linear(dequantize=True),
    "MatMulInteger": integer_product(scaled=False), "QLinearMatMul": integer_product(scaled=True),
    "ConvInteger": integer_window(scaled=False), "QLinearConv": integer_window(scaled=True),
}  # fmt: skip
STORED = {
    "Clip",
    "CumProd",
    "CumSum",
    "Expand",
    "Pad",
    "ReduceL1",
    "Resize",
    "Slice",
    "Tile",
    "TopK",
    "Trilu",
} | {op for op in OPERATORS if op.startswith(("Reduce", "QLinear")) or op.endswith("Integer")}
"""Whose inputs after the first must be constants."""
SINCE = {"CumProd": 26, "TensorScatter": 24}
"""The opset of those that are newer than the fuzzer's."""
TWO_RESULTS = {"MaxPool places", "TopK"}
"""Of which both are read. What stands behind the operator's name says which kind of it is meant."""
