"""Windows over pictures, products, samples between pixels."""

from __future__ import annotations

import numpy as np

from .arrays import Attributes, Draw, Drawn, ints, normal, partner, shape_of


def roi_align(rng: np.random.Generator) -> Drawn:
    n, c, h, w, count = (int(extent) for extent in rng.integers(1, 8, 5))
    boxes = rng.uniform(-3, 16, (count, 4)).astype(np.float32)
    found = {key: int(rng.integers(1, 4)) for key in ("output_height", "output_width", "sampling_ratio")}
    modes = {"coordinate_transformation_mode": ("half_pixel", "output_half_pixel"), "mode": ("avg", "max")}
    chosen = {key: str(rng.choice(words)) for key, words in modes.items()}
    scale = float(rng.choice([0.25, 0.5, 1.0]))
    return [normal(rng, n, c, h, w), boxes, rng.integers(0, n, count)], {**found, **chosen, "spatial_scale": scale}


def grid_sample(rng: np.random.Generator) -> Drawn:
    """A grid of places that are no ends of a step, where rounding would choose."""
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


_EQUATIONS = (("ij,jk->ik", ("ij", "jk")), ("bij,bjk->bik", ("bij", "bjk")), ("bhid,bhjd->bhij", ("bhid", "bhjd")),
              ("ij->ji", ("ij",)), ("ij->j", ("ij",)), ("i,j->ij", ("i", "j")),
              ("bij,jk->bik", ("bij", "jk")))  # fmt: skip


def einsum(rng: np.random.Generator) -> Drawn:
    equation, terms = _EQUATIONS[int(rng.integers(len(_EQUATIONS)))]
    extents = {letter: int(rng.integers(1, 6)) for letter in "bhijkd"}
    return [normal(rng, *(extents[letter] for letter in term)) for term in terms], {"equation": equation}
