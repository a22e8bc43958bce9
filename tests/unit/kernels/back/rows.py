"""Small encoders as exporters write them: attention, layer normalisations and endings of dense layers in parts."""

from __future__ import annotations

from math import prod

import numpy as np

from kernels.ir import compositions as c
from kernels.ir.graph import Graph

from .graphs import Builder
from .norms import layer_norm, unit_rows


def encoder(batch: int, rows: int, heads: int, depth: int, *, keys: int = 0, layers: int = 1) -> Graph:
    """Build so many layers. `keys` are of another sequence, and q, k and v come from layers of their own. 0 is
    torchvision's way: the places of the sequence before the batch, and one layer for all three."""
    build = Builder()
    width = heads * depth
    x = build.input(batch, rows, width)
    for _ in range(layers):
        normed = layer_norm(build, x, (batch, rows, width))
        if keys:
            out = _attended_across(build, normed, (batch, rows, keys), heads, depth)
        else:
            out = _attended_within(build, normed, (batch, rows), heads, depth)
        x = build.node("add", [out, x], (batch, rows, width))
        normed = layer_norm(build, x, (batch, rows, width))
        wide = _dense(build, normed, (batch, rows, width), 2 * width)
        wide = build.node("map", [wide], (batch, rows, 2 * width), expression=c.gelu("a"))
        out = _dense(build, wide, (batch, rows, 2 * width), width)
        x = build.node("add", [x, out], (batch, rows, width))
    return build.outputs(x, normed)


def windows(
    batch: int,
    side: int,
    window: int,
    heads: int,
    depth: int,
    *,
    rolled: int = 0,
    cosine: bool = False,
    lowest: float = 0.0,
) -> Graph:
    """Attention within windows of a picture, constants added to its scores: Swin's way, where rows are rolled and a
    mask keeps strangers apart. With `cosine` its second version's, which divides rows of q and k by their lengths.
    `lowest`: what the mask adds to all scores of a row, and to some of others; 0: what is random."""
    build = Builder()
    width, count = heads * depth, batch * side * side
    x = layer_norm(build, build.input(batch, side, side, width), (batch, side, side, width))
    y = _rolled(build, x, rolled)
    y = _dense(build, cut_into_windows(build, y, window), (count // window**2, window**2, width), 3 * width)
    y = _attended_by_windows(build, y, (batch, heads, depth), masked=rolled > 0, cosine=cosine)
    for mask in [each for each in build.graph.constants.values() if each.ndim == 5 and lowest]:
        mask[...] = np.where(build.rng.random(mask.shape) < 0.3, lowest, 0)
        mask[:, 0, :, 1] = lowest
    y = _dense(build, y, (count // window**2, window**2, width), width)
    y = _rolled(build, join_windows(build, y, (batch, side, side, width), window), side - rolled if rolled else 0)
    if cosine:
        y = layer_norm(build, y, (batch, side, side, width))
    return build.outputs(build.node("add", [x, y], (batch, side, side, width)))


def grids(batch: int, side: int, window: int, heads: int, depth: int) -> Graph:
    """MaxViT's way: a convolution's picture in windows, then in grids, with what is left of it added in that order."""
    build = Builder()
    width, across = heads * depth, side // window
    x = build.conv(build.input(batch, 3, side, side), width, (1, 1))
    for apart in (False, True):
        split = (batch, width, *((window, across) * 2 if apart else (across, window) * 2))
        turn = (0, 3, 5, 2, 4, 1) if apart else (0, 2, 4, 3, 5, 1)
        x = permuted(build, _reshape(build, x, split), turn)
        shape = (batch, across * across, window**2, width)
        x = _reshape(build, x, shape)
        y = _dense(build, layer_norm(build, x, shape), (batch * across**2, window**2, width), 3 * width)
        y = _attended_by_windows(build, y, (batch, heads, depth), masked=False, cosine=False)
        y = _reshape(build, _dense(build, y, (batch * across**2, window**2, width), width), shape)
        x = build.node("add", [x, y], shape)
        x = _reshape(build, x, tuple(split[axis] for axis in turn))
        x = _reshape(
            build, permuted(build, x, tuple(turn.index(axis) for axis in range(6))), (batch, width, side, side)
        )
    return build.outputs(build.conv(x, 5, (3, 3)))


def permuted(build: Builder, x: str, perm: tuple[int, ...]) -> str:
    """A transposition of many axes, as the importer writes it."""
    shape = build.graph.shapes[x]
    found = tuple(shape[axis] for axis in perm)
    table = build.constant(sum(found))
    build.graph.constants[table] = np.concatenate([np.arange(extent, dtype=np.float32) for extent in found])
    strides = tuple(prod(shape[axis + 1 :]) for axis in perm)
    return build.node("take", [x, table], found, shape=found, strides=strides, value=0.0)


def cut_into_windows(build: Builder, x: str, window: int) -> str:
    """Rows of each window behind each other."""
    batch, height, across, width = build.graph.shapes[x]
    shape = (batch * height // window, window, across // window, window * width)
    x = _reshape(build, x, shape)
    return build.node("transpose", [x], tuple(shape[axis] for axis in (0, 2, 1, 3)), perm=(0, 2, 1, 3))


def join_windows(build: Builder, x: str, shape: tuple[int, ...], window: int) -> str:
    """The picture of rows in windows."""
    batch, height, across, width = shape
    apart = (batch * height // window, across // window, window, window * width)
    x = _reshape(build, x, apart)
    x = build.node("transpose", [x], tuple(apart[axis] for axis in (0, 2, 1, 3)), perm=(0, 2, 1, 3))
    return _reshape(build, x, shape)


def _rolled(build: Builder, x: str, by: int) -> str:
    shape = build.graph.shapes[x]
    for axis in (1, 2) if by else ():
        parts = []
        for start, stop in ((by, shape[axis]), (0, by)):
            part = tuple(stop - start if k == axis else extent for k, extent in enumerate(shape))
            parts.append(build.node("slice", [x], part, axis=axis, start=start, stop=stop))
        x = build.node("concat", parts, shape, axis=axis)
    return x


def _attended_by_windows(build: Builder, x: str, sizes: tuple[int, int, int], *, masked: bool, cosine: bool) -> str:
    (batch, heads, depth), (windows, rows, _) = sizes, build.graph.shapes[x]
    x = permuted(build, _reshape(build, x, (windows, rows, 3, heads, depth)), (2, 0, 3, 1, 4))
    shape, scores = (windows, heads, rows, depth), (windows, heads, rows, rows)
    parts = [
        _reshape(build, build.node("slice", [x], (1, *shape), axis=0, start=at, stop=at + 1), shape) for at in range(3)
    ]
    q, k = (
        (unit_rows(build, part) for part in parts[:2])
        if cosine
        else (_reshape(build, part, shape) for part in parts[:2])
    )
    if not cosine:
        q = build.node("map", [q], shape, expression=("mul", "a", depth**-0.5))
    k = build.node("transpose", [k], (windows, heads, depth, rows), perm=(0, 1, 3, 2))
    y = build.node("matmul", [q, k], scores)
    if cosine:
        y = build.node("mul", [y, build.constant(1, heads, 1, 1)], scores)
    y = build.node("add", [y, build.constant(1, heads, rows, rows)], scores)
    if masked:
        apart = (batch, windows // batch, heads, rows, rows)
        y = build.node("add", [_reshape(build, y, apart), build.constant(1, windows // batch, 1, rows, rows)], apart)
        y = _reshape(build, y, scores)
    y = build.node("softmax", [y], scores, axis=3)
    y = build.node("matmul", [y, parts[2]], shape)
    y = build.node("transpose", [y], (windows, rows, heads, depth), perm=(0, 2, 1, 3))
    return _reshape(build, y, (windows, rows, heads * depth))


def _attended_within(build: Builder, x: str, shape: tuple[int, int], heads: int, depth: int) -> str:
    (batch, rows), width = shape, heads * depth
    x = build.node("transpose", [x], (rows, batch, width), perm=(1, 0, 2))
    x = _dense(build, x, (rows, batch, width), 3 * width)
    x = _reshape(build, x, (1, rows * batch, 3, width))
    x = build.node("transpose", [x], (3, rows * batch, 1, width), perm=(2, 1, 0, 3))
    x = _reshape(build, x, (3, rows, batch, width))
    parts = []
    for at in range(3):
        part = build.node("slice", [x], (1, rows, batch, width), axis=0, start=at, stop=at + 1)
        part = _reshape(build, part, (rows, batch * heads, depth))
        part = build.node("transpose", [part], (batch * heads, rows, depth), perm=(1, 0, 2))
        parts.append(_reshape(build, part, (batch, heads, rows, depth)))
    q, k, v = parts
    out = _attention(build, q, k, v, (batch, heads, rows, rows, depth))
    out = build.node("transpose", [out], (rows, batch, heads, depth), perm=(2, 0, 1, 3))
    out = _dense(build, _reshape(build, out, (rows * batch, width)), (rows, batch, width), width)
    return build.node("transpose", [out], (batch, rows, width), perm=(1, 0, 2))


def _attended_across(build: Builder, x: str, shape: tuple[int, int, int], heads: int, depth: int) -> str:
    (batch, rows, keys), width = shape, heads * depth
    other = build.input(batch, keys, width, name="other")
    parts = []
    for source, lines in ((x, rows), (other, keys), (other, keys)):
        part = _dense(build, source, (batch, lines, width), width)
        part = _reshape(build, part, (batch, lines, heads, depth))
        parts.append(build.node("transpose", [part], (batch, heads, lines, depth), perm=(0, 2, 1, 3)))
    q, k, v = parts
    out = _attention(build, q, k, v, (batch, heads, rows, keys, depth))
    out = build.node("transpose", [out], (batch, rows, heads, depth), perm=(0, 2, 1, 3))
    return _dense(build, _reshape(build, out, (batch, rows, width)), (batch, rows, width), width)


def _attention(build: Builder, q: str, k: str, v: str, sizes: tuple[int, int, int, int, int]) -> str:
    batch, heads, rows, keys, depth = sizes
    k = build.node("transpose", [k], (batch, heads, depth, keys), perm=(0, 1, 3, 2))
    q = build.node("map", [q], (batch, heads, rows, depth), expression=("mul", "a", depth**-0.25))
    k = build.node("map", [k], (batch, heads, depth, keys), expression=("div", "a", depth**0.25))
    scores = build.node("matmul", [q, k], (batch, heads, rows, keys))
    scores = build.node("map", [scores], (batch, heads, rows, keys), expression=("mul", 1.5, "a"))
    weights = build.node("softmax", [scores], (batch, heads, rows, keys), axis=3)
    return build.node("matmul", [weights, v], (batch, heads, rows, depth))


def _dense(build: Builder, x: str, shape: tuple[int, ...], columns: int) -> str:
    """Build a product with a constant, and a constant that is added."""
    x = _reshape(build, x, (prod(shape[:-1]), shape[-1]))
    weight = build.constant(shape[-1], columns, scale=shape[-1] ** -0.5)
    x = build.node("dense", [x, weight], (prod(shape[:-1]), columns))
    x = _reshape(build, x, (*shape[:-1], columns))
    return build.node("add", [x, build.constant(1, 1, columns, scale=0.1)], (*shape[:-1], columns))


def _reshape(build: Builder, x: str, shape: tuple[int, ...]) -> str:
    return build.node("reshape", [x], shape, shape=shape)
