"""Operators that put elements elsewhere, by constants and by places."""

from __future__ import annotations

import numpy as np

from .arrays import Draw, Drawn, ints, normal, partner, shape_of, some_axes


def transpose(rng: np.random.Generator) -> Drawn:
    x = normal(rng, *shape_of(rng, (1, 2, 3, 4, 5, 6), 5))
    return [x], {"perm": [int(axis) for axis in rng.permutation(x.ndim)]}


def slices(rng: np.random.Generator) -> Drawn:
    x = normal(rng, *shape_of(rng, (1, 2, 3, 4)))
    axes = some_axes(rng, x.ndim)
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
    """A tensor to choose from, with equal numbers too."""
    x = normal(rng, *shape_of(rng, (1, 2, 3, 4), 12))
    x = np.round(x) if rng.random() < 0.5 else x
    axis = int(rng.integers(-x.ndim, x.ndim))
    return [x, ints(int(rng.integers(1, x.shape[axis] + 1)))], {"axis": axis, "largest": int(rng.integers(2))}


def concat(rng: np.random.Generator) -> Drawn:
    shape = list(shape_of(rng, (1, 2, 3, 4)))
    axis = int(rng.integers(0, len(shape)))
    parts = []
    for _ in range(int(rng.integers(1, 4))):
        shape[axis] = int(rng.integers(1, 9))
        parts.append(normal(rng, *shape))
    return parts, {"axis": axis - (len(shape) if rng.random() < 0.3 else 0)}


def tensor_scatter(rng: np.random.Generator) -> Drawn:
    x, mode = normal(rng, *shape_of(rng, (3, 4), 6)), str(rng.choice(["linear", "circular"]))
    count = int(rng.integers(1, x.shape[-2] + 1))
    last = x.shape[-2] - (count if mode == "linear" else 1)
    begins = np.asarray(rng.integers(0, last + 1, x.shape[0]), np.int64)
    return [x, normal(rng, *x.shape[:-2], count, x.shape[-1]), begins], {"mode": mode}


def blocks(to_depth: bool) -> Draw:
    def draw(rng: np.random.Generator) -> Drawn:
        size = int(rng.integers(1, 4))
        n, c, h, w = (int(extent) for extent in rng.integers(1, 4, 4))
        if to_depth:
            return [normal(rng, n, c, h * size, w * size)], {"blocksize": size}
        return [normal(rng, n, c * size * size, h, w)], {"blocksize": size, "mode": str(rng.choice(["DCR", "CRD"]))}

    return draw


def triangle(rng: np.random.Generator) -> Drawn:
    x = normal(rng, *shape_of(rng, (2, 3, 4)))
    return [x, np.asarray(int(rng.integers(-3, 4)), np.int64)], {"upper": int(rng.integers(2))}
