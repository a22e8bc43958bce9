"""Small encoders as exporters write them: attention, layer normalisations and endings of dense layers in parts."""

from __future__ import annotations

from math import prod

from kernels.ir import compositions as c
from kernels.ir.graph import Graph

from .graphs import Builder


def encoder(batch: int, rows: int, heads: int, depth: int, *, keys: int = 0, layers: int = 1) -> Graph:
    """So many layers. `keys`: of another sequence, by which q, k and v come from layers of their own; 0: torchvision's
    way, with the places of the sequence before the batch, and one layer for all three."""
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


def layer_norm(build: Builder, x: str, shape: tuple[int, ...]) -> str:
    last, single = len(shape) - 1, (*shape[:-1], 1)
    mean = {"start": last, "stop": last + 1, "kind": "mean"}
    distance = build.node("map", [x, build.node("reduce", [x], single, **mean)], shape, expression=("sub", "a", "b"))
    square = build.node("map", [distance], shape, expression=("mul", "a", "a"))
    inverse = ("div", 1.0, ("sqrt", ("add", "a", 1e-6)))
    factor = build.node("map", [build.node("reduce", [square], single, **mean)], single, expression=inverse)
    out = build.node("map", [distance, factor], shape, expression=("mul", "a", "b"))
    out = build.node("map", [out, build.constant(shape[-1])], shape, expression=("mul", "a", "b"))
    return build.node("map", [out, build.constant(shape[-1])], shape, expression=("add", "a", "b"))


def _dense(build: Builder, x: str, shape: tuple[int, ...], columns: int) -> str:
    """As a product with a constant, and a constant that is added."""
    x = _reshape(build, x, (prod(shape[:-1]), shape[-1]))
    weight = build.constant(shape[-1], columns, scale=shape[-1] ** -0.5)
    x = build.node("dense", [x, weight], (prod(shape[:-1]), columns))
    x = _reshape(build, x, (*shape[:-1], columns))
    return build.node("add", [x, build.constant(1, 1, columns, scale=0.1)], (*shape[:-1], columns))


def _reshape(build: Builder, x: str, shape: tuple[int, ...]) -> str:
    return build.node("reshape", [x], shape, shape=shape)
