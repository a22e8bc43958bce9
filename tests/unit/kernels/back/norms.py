"""Normalisations in one step and in single steps, as exporters write them."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from kernels.ir.graph import Graph

from .graphs import Builder

FORMS = ("root", "power", "sums", "rms", "length", "length tf")


def layer_norm(build: Builder, x: str, shape: tuple[int, ...]) -> str:
    mean = _reduced(build, x, len(shape) - 1)
    distance = build.node("map", [x, mean], shape, expression=("sub", "a", "b"))
    inverse = ("div", 1.0, ("sqrt", ("add", "a", 1e-6)))
    factor = _mapped(build, inverse, _variance(build, distance, len(shape) - 1))
    return _scaled(build, build.node("map", [distance, factor], shape, expression=("mul", "a", "b")), shape)


def unit_rows(build: Builder, x: str) -> str:
    """Rows divided by their lengths, as PyTorch's `normalize` is exported."""
    shape = build.graph.shapes[x]
    y = _mapped(build, ("sqrt", "a"), _reduced(build, _mapped(build, ("mul", "a", "a"), x), len(shape) - 1, "sum"))
    y = build.node("clip", [y], build.graph.shapes[y], min=1e-12, max=3e38)
    return build.node("map", [x, _spread(build, y, shape)], shape, expression=("div", "a", "b"))


def norms(shape: tuple[int, ...], axis: int, *, watched: bool = False) -> Graph:
    """Every form of normalisation in single steps; `watched`: all that they compute on the way are outputs, too."""
    build = Builder()
    x = build.input(*shape)
    found = [_steps(build, x, axis, form) for form in FORMS]
    between = [node.output for node in build.graph.nodes if node.output not in found] if watched else []
    return build.outputs(*found, *between)


def rms_norm(build: Builder, x: str, shape: tuple[int, ...], *, shifted: bool = True) -> str:
    x = _steps(build, x, len(shape) - 1, "rms")
    if shifted:
        return _scaled(build, x, shape)
    return build.node("map", [x, build.constant(shape[-1])], shape, expression=("mul", "a", "b"))


def _steps(build: Builder, x: str, axis: int, form: str) -> str:
    """A normalisation along an axis as exporters write it in single steps: PyTorch's of opset 11 to 16, others' ways of
    writing a root and a mean, RMS norms of transformers, and PyTorch's and TensorFlow's division by a row's length."""
    shape, epsilon = build.graph.shapes[x], build.constant()
    build.graph.constants[epsilon] = np.float32(1e-5)
    single = tuple(1 if k == axis else extent for k, extent in enumerate(shape))
    is_sum, n = form in ("sums", "length", "length tf"), float(shape[axis])
    if form in ("root", "power", "sums"):
        distances = []
        for _ in range(2 if form == "sums" else 1):
            mean = _reduced(build, x, axis, "sum" if is_sum else "mean")
            mean = _mapped(build, ("div", "a", n), mean) if is_sum else mean
            distances.append(build.node("map", [x, mean], shape, expression=("sub", "a", "b")))
    else:
        distances = [x]
    square = build.node("mul", [distances[-1]] * 2, shape)
    y = _reduced(build, square, axis, "sum" if is_sum else "mean")
    if form == "length":
        y = build.node("clip", [_mapped(build, ("sqrt", "a"), y)], single, min=1e-3, max=3.4e38)
        return build.node("map", [x, _spread(build, y, shape)], shape, expression=("div", "a", "b"))
    if form == "length tf":
        y = _mapped(build, ("max", 1e-6, "a"), y)
    else:
        y = _mapped(build, ("mul", 1 / n, "a"), y) if is_sum else y
        y = build.node("add", [y, epsilon], single) if form == "root" else _mapped(build, ("add", 1e-5, "a"), y)
    if form == "root":
        y = build.node("map", [distances[0], _mapped(build, ("sqrt", "a"), y)], shape, expression=("div", "a", "b"))
        return _scaled(build, y, shape) if axis == len(shape) - 1 else y
    if form == "power":
        y = _mapped(build, ("pow", "a", -0.5), y)
        return build.node("map", [y, distances[0]], shape, expression=("mul", "a", "b"))
    y = _mapped(build, ("div", 1.0, "a"), _mapped(build, ("sqrt", "a"), y))
    return build.node("map", [distances[0], y], shape, expression=("mul", "a", "b"))


def group_norm(build: Builder, x: str, groups: int, form: str) -> str:
    """A normalisation of groups of an image's channels, as PyTorch's exporters write it in one step or in single ones,
    with a factor and a summand of each channel."""
    n, c, h, w = shape = build.graph.shapes[x]
    rows = {"rows": (n * groups, c // groups * h * w), "instance": (n, groups, 1, c // groups * h * w)}
    whole = shape if form == "image" else rows.get(form, (n, groups, c // groups, h * w))
    x = x if form == "image" else build.node("reshape", [x], whole, shape=whole)
    if form == "instance":
        x = build.node("instance_norm", [x, build.constant(groups), build.constant(groups)], whole, epsilon=1e-3)
    else:
        start = 1 if form in ("rows", "image") else 2
        axes = {"start": start, "stop": len(whole), "kind": "mean"}
        single = (*whole[:start], *(1 for _ in whole[start:]))
        mean = build.node("reduce", [x], single, **axes)
        distance = build.node("map", [x, mean], whole, expression=("sub", "a", "b"))
        squared = x if form == "moments" else distance
        square = build.node("reduce", [build.node("mul", [squared] * 2, whole)], single, **axes)
        if form == "moments":
            lost = build.node("mul", [mean, mean], single)
            square = build.node("map", [square, lost], single, expression=("sub", "a", "b"))
        root = ("div", "a", ("sqrt", ("add", "b", 1e-3)))
        x = build.node("map", [distance, square], whole, expression=root)
    x = x if form == "image" else build.node("reshape", [x], shape, shape=shape)
    x = build.node("mul", [x, build.constant(c, 1, 1)], shape)
    return build.node("add", [x, build.constant(c, 1, 1)], shape)


def _reduced(build: Builder, x: str, axis: int, kind: str = "mean") -> str:
    shape = tuple(1 if k == axis else extent for k, extent in enumerate(build.graph.shapes[x]))
    return build.node("reduce", [x], shape, start=axis, stop=axis + 1, kind=kind)


def _mapped(build: Builder, expression: tuple[Any, ...], x: str) -> str:
    return build.node("map", [x], build.graph.shapes[x], expression=expression)


def _variance(build: Builder, distance: str, axis: int) -> str:
    return _reduced(build, _mapped(build, ("mul", "a", "a"), distance), axis)


def _scaled(build: Builder, x: str, shape: tuple[int, ...]) -> str:
    x = build.node("map", [x, build.constant(shape[-1])], shape, expression=("mul", "a", "b"))
    return build.node("map", [x, build.constant(shape[-1])], shape, expression=("add", "a", "b"))


def _spread(build: Builder, x: str, shape: tuple[int, ...]) -> str:
    """ONNX's Expand."""
    given = build.graph.shapes[x]
    table = build.constant(sum(shape))
    places = [np.arange(extent) if n > 1 else np.zeros(extent) for extent, n in zip(shape, given, strict=True)]
    build.graph.constants[table] = np.concatenate(places).astype(np.float32)
    strides = tuple(prod(given[k + 1 :]) if n > 1 else 0 for k, n in enumerate(given))
    return build.node("take", [x, table], shape, shape=shape, strides=strides, value=0.0)
