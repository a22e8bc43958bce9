"""Convolutions and pooling of one and three dimensions, dilated pooling, transposed convolution."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, prod

import numpy as np

from kernels.errors import ModelError
from kernels.frontend.onnx.context import AnyArray, Context, OnnxNode

from .steps import Steps

_LOWEST = -3.4028234663852886e38


def _numbers(s: Steps, name: str, count: int, usual: int) -> list[int]:
    values = [int(value) for value in s.attribute(name, [usual] * count)]
    if len(values) != count:
        raise ModelError(f"node {s.node.name!r} ({s.node.op}): {name} {values} has not {count} numbers")
    if min(values, default=1) < 1 and name in ("strides", "dilations", "kernel_shape"):
        raise ModelError(f"node {s.node.name!r} ({s.node.op}): {name} {values}; expected positive numbers")
    return values


def _pads(
    s: Steps, extents: Sequence[int], kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> list[tuple[int, int]]:
    """Before and after each axis."""
    mode, count = str(s.attribute("auto_pad", "NOTSET")), len(extents)
    if mode == "VALID":
        return [(0, 0)] * count
    if mode == "NOTSET":
        pads = _numbers(s, "pads", 2 * count, 0)
        return [(pads[axis], pads[count + axis]) for axis in range(count)]
    found = []
    for extent, k, stride, dilation in zip(extents, kernel, strides, dilations, strict=True):
        total = max(0, (-(-extent // stride) - 1) * stride + dilation * (k - 1) + 1 - extent)
        found.append((total // 2, total - total // 2) if mode == "SAME_UPPER" else (total - total // 2, total // 2))
    return found


def _padded(s: Steps, x: str, pads: Sequence[tuple[int, int]], value: float, spread: Sequence[int] = ()) -> str:
    """x with its last axes padded, or cropped where a pad is negative, and spread with zeros between elements."""
    shape = s.shape(x)
    tables: list[AnyArray] = [np.arange(extent) for extent in shape]
    steps = spread or [1] * len(pads)
    ends = zip(shape[-len(pads) :], steps, pads, strict=True)
    s.check_size((*shape[: -len(pads)], *((extent - 1) * step + 1 + sum(pad) for extent, step, pad in ends)))
    for k, ((begin, end), step) in enumerate(zip(pads, steps, strict=True)):
        axis = len(shape) - len(pads) + k
        places = np.arange(-begin, (shape[axis] - 1) * step + 1 + end)
        inside = (places >= 0) & (places <= (shape[axis] - 1) * step) & (places % step == 0)
        tables[axis] = np.where(inside, places // step, -1)
    strides = [prod(shape[axis + 1 :]) for axis in range(len(shape))]
    if all(len(t) == extent and (t == np.arange(extent)).all() for t, extent in zip(tables, shape, strict=True)):
        return s.tensor(x)
    return s.take(x, [len(table) for table in tables], tables, strides, value)


def conv(node: OnnxNode, to: Context) -> None:
    """Of one or three dimensions: rows of an image, and images whose channels are those of all depths of a window. Of
    one to three dimensions with computed weights."""
    s = Steps(node, to)
    x, shape = s.operand(0), s.shape(s.operand(1))
    if len(shape) != len(s.shape(x)) or len(shape) not in (3, 4, 5):
        node.reject(f"a weight of shape {shape} for an input of shape {s.shape(x)}; supported: 1 to 3 dimensions")
    count = len(shape) - 2
    kernel, extents = shape[2:], s.shape(x)[2:]
    strides, dilations = _numbers(s, "strides", count, 1), _numbers(s, "dilations", count, 1)
    pads = _pads(s, extents, kernel, strides, dilations)
    if min(min(pad) for pad in pads) < 0 or tuple(s.attribute("kernel_shape", kernel)) != kernel:
        node.reject(f"pads {pads} or kernel_shape of a weight of shape {shape}")
    groups = int(s.attribute("group", 1))
    if s.value(node.input(1)) is None:
        found = _by_columns(s, _padded(s, x, pads, 0.0), s.operand(1), strides, dilations, groups)
    else:
        found = _convolved(s, x, to.finite(node, 1), _constant_bias(s), strides, dilations, pads, groups)
    s.end(_with_computed_bias(s, found))


def _constant_bias(s: Steps) -> AnyArray | None:
    return s.to.finite(s.node, 2) if s.has(2) and s.value(s.node.input(2)) is not None else None


def _with_computed_bias(s: Steps, found: str) -> str:
    """The result with what was not added yet: a bias that is computed, or that of computed weights."""
    if not s.has(2) or (_constant_bias(s) is not None and s.value(s.node.input(1)) is not None):
        return found
    _, m, *counts = s.shape(found)
    return s.map(("add", "a", "b"), found, s.reshape(s.operand(2), (m, *(1 for _ in counts))))


def _by_columns(s: Steps, x: str, weight: str, strides: Sequence[int], dilations: Sequence[int], groups: int) -> str:
    """(n, m, counts...) by computed weights (m, c / groups, kernel...): rows of them times columns of windows."""
    n, c, *extents = s.shape(x)
    m, each, *kernel = s.shape(weight)
    if each * groups != c or m % groups:
        raise ModelError(
            f"node {s.node.name!r} ({s.node.op}): weights {s.shape(weight)} of {groups} groups do not fit {c} channels"
        )
    along = zip(extents, kernel, strides, dilations, strict=True)
    counts = [(extent - dilation * (size - 1) - 1) // stride + 1 for extent, size, stride, dilation in along]
    if min(counts) < 1:
        raise ModelError(f"node {s.node.name!r} ({s.node.op}): a window of {kernel} does not fit into {extents}")
    s.check_size((n * c, *kernel, *counts))
    columns = _windows(s, s.reshape(x, (n * c, *extents)), kernel, counts, dilations, strides)
    lead, depth = (n, groups) if n > 1 else (groups,), each * prod(kernel)
    product = s.matmul(
        s.reshape(weight, (groups, m // groups, depth)), s.reshape(columns, (*lead, depth, prod(counts)))
    )
    return s.reshape(product, (n, m, *counts))


def _convolved(
    s: Steps, x: str, weight: AnyArray, bias: AnyArray | None, strides: Sequence[int], dilations: Sequence[int],
    pads: Sequence[tuple[int, int]], groups: int,
) -> str:  # fmt: skip
    n, c, *extents = s.shape(x)
    count = len(extents)
    if count == 1:
        x, weight = s.reshape(x, (n, c, 1, extents[0])), weight[:, :, None]
        strides, dilations, pads = (1, *strides), (1, *dilations), ((0, 0), *pads)
    depth = 0
    if count == 3:
        x, depth = _depths(s, _padded(s, x, [pads[0], (0, 0), (0, 0)], 0.0), weight, strides[0], dilations[0])
        weight = weight.reshape(weight.shape[0], -1, *weight.shape[3:])
        strides, dilations, pads = strides[1:], dilations[1:], pads[1:]
    inputs = [s.tensor(x), s.constant(weight, f"{s.node.input(1)}.window")]
    if bias is not None:
        inputs.append(s.constant(bias, s.node.input(2)))
    attributes = {
        "strides": tuple(strides), "dilations": tuple(dilations), "groups": groups,
        "pads": tuple(pads[axis][end] for end in (0, 1) for axis in (0, 1)),
    }  # fmt: skip
    found = s.emit("conv", inputs, attributes)
    _, k, oh, ow = s.shape(found)
    if count == 1:
        return s.reshape(found, (n, k, ow))
    if count == 2:
        return found
    turned = s.transpose(s.reshape(found, (n, depth, k, oh * ow)), (0, 2, 1, 3))
    return s.reshape(turned, (n, k, depth, oh, ow))


def _depths(s: Steps, x: str, weight: AnyArray, stride: int, dilation: int) -> tuple[str, int]:
    """(n * results along the depth, c * depths of a window, h, w), and how many results."""
    n, c, d, h, w = s.shape(x)
    size = weight.shape[2]
    count = (d - dilation * (size - 1) - 1) // stride + 1
    if count < 1:
        raise ModelError(f"node {s.node.name!r} ({s.node.op}): a window of {size} does not fit into a depth of {d}")
    shape = (n, count, c, size, h * w)
    strides = (c * d * h * w, stride * h * w, d * h * w, dilation * h * w, 1)
    return s.reshape(s.take(x, shape, [np.arange(k) for k in shape], strides), (n * count, c * size, h, w)), count


def conv_transpose(node: OnnxNode, to: Context) -> None:
    """A convolution of the input whose channels are the phases of the result: the outputs between two inputs, which
    lie `stride` apart and each see every `stride`-th tap only (sub-pixel convolution, Shi et al. 2016)."""
    s = Steps(node, to)
    x, shape = s.operand(0), s.shape(s.operand(1))
    _, c, *extents = s.shape(x)
    count, groups = len(extents), int(s.attribute("group", 1))
    if len(shape) != count + 2 or shape[0] != c or c % groups or not 1 <= count <= 3:
        raise ModelError(f"node {node.name!r} ({node.op}): a weight of shape {shape} does not fit {s.shape(x)}")
    kernel, m = shape[2:], groups * shape[1]
    strides, dilations = _numbers(s, "strides", count, 1), _numbers(s, "dilations", count, 1)
    cuts = _transposed_cuts(s, extents, kernel, strides, dilations)
    s.check_size((s.shape(x)[0], m, *(size for _, size in cuts)))
    if s.value(node.input(1)) is None:
        s.end(_with_computed_bias(s, _spread_columns(s, x, s.operand(1), strides, dilations, groups, cuts)))
        return
    weight = to.finite(node, 1)
    between = [stride if dilation > 1 else 1 for stride, dilation in zip(strides, dilations, strict=True)]
    x = _padded(s, x, [(0, 0)] * count, 0.0, between)  # taps that are dilated see no phase alone
    phases = [stride // step for stride, step in zip(strides, between, strict=True)]
    to.reserve(node, 4 * m * (c // groups) * prod(-(-k // p) * p for k, p in zip(kernel, phases, strict=True)))
    grouped = np.swapaxes(weight.reshape(groups, c // groups, m // groups, *kernel), 1, 2)
    window = _by_phase(grouped.reshape(m, c // groups, *kernel), phases)
    sides = []
    for extent, taps, dilation, phase, (begin, size) in zip(
        s.shape(x)[2:], window.shape[2:], dilations, phases, cuts, strict=True
    ):
        first, end = begin // phase, -(-(begin + size) // phase)
        sides.append((dilation * (taps - 1) - first, end - extent))
    x = _padded(s, x, [(min(0, before), min(0, after)) for before, after in sides], 0.0)
    bias = _constant_bias(s)
    bias = None if bias is None else np.repeat(bias, prod(phases))
    pads = [(max(0, before), max(0, after)) for before, after in sides]
    found = _convolved(s, x, window, bias, (1,) * count, dilations, pads, groups)
    s.end(_with_computed_bias(s, _joined(s, found, phases, cuts) if prod(phases) > 1 else found))


def _spread_columns(
    s: Steps, x: str, weight: str, strides: Sequence[int], dilations: Sequence[int], groups: int,
    cuts: Sequence[tuple[int, int]],
) -> str:  # fmt: skip
    """A transposed convolution by computed weights (c, m / groups, kernel...): by the same ones mirrored, of the input
    with zeros between its elements."""
    c, each, *kernel = s.shape(weight)
    taps = prod(kernel)
    turned = s.transpose(s.reshape(weight, (groups, c // groups, each, taps)), (0, 2, 1, 3))
    mirrored = s.pick(turned, 3, np.arange(taps)[::-1])
    pads = []
    for extent, size, stride, dilation, (begin, count) in zip(
        s.shape(x)[2:], kernel, strides, dilations, cuts, strict=True
    ):
        reach = dilation * (size - 1)
        pads.append((reach - begin, count + begin - stride * (extent - 1) - 1))
    x = _padded(s, x, pads, 0.0, strides)
    weight = s.reshape(mirrored, (groups * each, c // groups, *kernel))
    return _by_columns(s, x, weight, (1,) * len(kernel), dilations, groups)


def _joined(s: Steps, x: str, phases: Sequence[int], cuts: Sequence[tuple[int, int]]) -> str:
    """(n, m, sizes...) of (n, m * phases, extents...): the phases lie between each other, and `cuts` of all is left."""
    n, channels, *extents = s.shape(x)
    m, pixels = channels // prod(phases), prod(extents)
    tables: list[AnyArray] = [np.arange(n * m)]
    for k, (phase, (begin, size)) in enumerate(zip(phases, cuts, strict=True)):
        place = begin % phase + np.arange(size)
        apart = prod(phases[k + 1 :]) * prod(extents[: k + 1])
        tables.append(place // phase + place % phase * apart)
        if tables[-1].max() >= 1 << 24:
            s.node.reject(f"{pixels} elements of a channel; a table of fp32 tells phases that are closer")
    strides = (prod(phases) * pixels, *(prod(extents[k + 1 :]) for k in range(len(extents))))
    sizes = [size for _, size in cuts]
    return s.reshape(s.take(x, (n * m, *sizes), tables, strides), (n, m, *sizes))


def _by_phase(weight: AnyArray, phases: Sequence[int]) -> AnyArray:
    """(m * phases, c, taps of a phase...), mirrored, of (m, c, taps...)."""
    m, c, *kernel = weight.shape
    taps = [-(-size // phase) for size, phase in zip(kernel, phases, strict=True)]
    more = [(0, k * phase - size) for k, phase, size in zip(taps, phases, kernel, strict=True)]
    split = np.pad(weight, [(0, 0), (0, 0), *more]).reshape(
        m, c, *(n for pair in zip(taps, phases, strict=True) for n in pair)
    )
    of_taps, of_phases = range(2, split.ndim, 2), range(3, split.ndim, 2)
    turned = np.flip(split, tuple(of_taps)).transpose(0, *of_phases, 1, *of_taps)
    return np.ascontiguousarray(turned).reshape(m * prod(phases), c, *taps)


def _transposed_cuts(
    s: Steps, extents: Sequence[int], kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> list[tuple[int, int]]:
    """Of each axis of all that the taps reach: where the result begins, and its size."""
    count = len(extents)
    more = _numbers(s, "output_padding", count, 0)
    pads = _numbers(s, "pads", 2 * count, 0)
    mode, wanted = str(s.attribute("auto_pad", "NOTSET")), s.attribute("output_shape")
    found = []
    for axis in range(count):
        reach = dilations[axis] * (kernel[axis] - 1)
        whole = strides[axis] * (extents[axis] - 1) + more[axis] + reach + 1
        begin, end = pads[axis], pads[count + axis]
        size = int(wanted[-count:][axis]) if wanted is not None else extents[axis] * strides[axis]
        if wanted is not None or mode.startswith("SAME"):
            total = whole - size
            half = int(total / 2)
            begin = 0 if total < 0 else half if mode == "SAME_UPPER" else total - half
            end = total - begin
        elif mode == "VALID":
            begin = end = 0
        found.append((begin, whole - begin - end))
    return found


def pool(node: OnnxNode, to: Context) -> None:
    """MaxPool, AveragePool and LpPool of any dimensions and dilations."""
    s = Steps(node, to)
    x = s.operand(0)
    n, c, *extents = s.shape(x)
    count = len(extents)
    kernel = _numbers(s, "kernel_shape", count, 1)
    strides, dilations = _numbers(s, "strides", count, 1), _numbers(s, "dilations", count, 1)
    if len(node.outputs) > 1:
        node.reject(f"only the first output is supported, but {node.outputs[1]} is read as well")
    pads = _pads(s, extents, kernel, strides, dilations)
    ceiled = bool(s.attribute("ceil_mode", 0)) and str(s.attribute("auto_pad", "NOTSET")) == "NOTSET"
    counts = [_count(*each, ceiled) for each in zip(extents, kernel, strides, dilations, pads, strict=True)]
    if min(counts) < 1:
        raise ModelError(f"node {node.name!r} ({node.op}): a window of {kernel} does not fit into {extents}")
    whole = [
        (begin, max(end, (k - 1) * stride + dilation * (size - 1) + 1 - extent - begin))
        for (begin, end), k, stride, dilation, size, extent in zip(
            pads, counts, strides, dilations, kernel, extents, strict=True
        )
    ]
    include = bool(s.attribute("count_include_pad", 0))
    separable = node.op == "MaxPool" or (node.op == "AveragePool" and (not include or whole == pads))
    fits = all(max(pad) < size for pad, size in zip(whole, kernel, strict=True))
    if separable and fits and set(dilations) == {1} and count in (1, 3):
        s.end(_pooled(s, x, list(zip(kernel, strides, whole, strict=True)), include))
        return
    p = float(s.attribute("p", 2))
    if node.op == "LpPool":
        x = s.map(("abs", "a") if p == 1 else ("mul", "a", "a") if p == 2 else ("pow", ("abs", "a"), p), x)
    padded = _padded(s, x, whole, _LOWEST if node.op == "MaxPool" else 0.0)
    windows = _windows(s, s.reshape(padded, (n * c, *s.shape(padded)[2:])), counts, kernel, strides, dilations)
    axes = range(1 + count, 1 + 2 * count)
    found = s.reshape(
        s.reduce(windows, list(axes), "max" if node.op == "MaxPool" else "sum", keep=False), (n, c, *counts)
    )
    if node.op == "LpPool":
        found = found if p == 1 else s.map(("sqrt", "a") if p == 2 else ("pow", "a", 1 / p), found)
    if node.op == "AveragePool":
        sizes = _sizes(extents, counts, kernel, strides, dilations, pads, include=include)
        found = s.map(("div", "a", "b"), found, sizes)
    s.end(found)


Along = tuple[int, int, tuple[int, int]]
"""Of a window along an axis: its size, its stride, the pads before and after."""


def _pooled(s: Steps, x: str, window: Sequence[Along], include: bool) -> str:
    """Pooling of rows; of images and then along their depth, since a maximum is the same by parts, and so is a mean
    whose number of elements is a product of numbers along the axes."""
    n, c, *extents = s.shape(x)
    alone = (1, 1, (0, 0))
    if len(window) == 1:
        found = _flat_pool(s, s.reshape(x, (n, c, 1, *extents)), (alone, *window), include)
        return s.reshape(found, (n, c, s.shape(found)[3]))
    flat = _flat_pool(s, s.reshape(x, (n, c * extents[0], *extents[1:])), window[1:], include)
    oh, ow = s.shape(flat)[2:]
    found = _flat_pool(s, s.reshape(flat, (n, c, extents[0], oh * ow)), (window[0], alone), include)
    return s.reshape(found, (n, c, s.shape(found)[2], oh, ow))


def _flat_pool(s: Steps, x: str, window: Sequence[Along], include: bool) -> str:
    kernel, strides, pads = zip(*window, strict=True)
    attributes = {"kernel": kernel, "strides": strides, "pads": tuple(pad[end] for end in (0, 1) for pad in pads)}
    if s.node.op == "MaxPool":
        return s.emit("max_pool", (s.tensor(x),), attributes)
    return s.emit("average_pool", (s.tensor(x),), {**attributes, "count_include_pad": int(include)})


def _count(extent: int, kernel: int, stride: int, dilation: int, pads: tuple[int, int], ceiled: bool) -> int:
    room = extent + sum(pads) - dilation * (kernel - 1) - 1
    if not ceiled or room < 0:
        return room // stride + 1
    count = ceil(room / stride) + 1
    return count - 1 if (count - 1) * stride >= extent + pads[0] else count


def _windows(
    s: Steps, x: str, counts: Sequence[int], kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> str:
    """(rows, places of the window..., elements of the window...)"""
    rows, *extents = s.shape(x)
    steps = [prod(extents[axis + 1 :]) for axis in range(len(extents))]
    shape = (rows, *counts, *kernel)
    lengths = [
        prod(extents),
        *(step * stride for step, stride in zip(steps, strides, strict=True)),
        *(step * dilation for step, dilation in zip(steps, dilations, strict=True)),
    ]
    return s.take(x, shape, [np.arange(k) for k in shape], lengths)


def _sizes(
    extents: Sequence[int], counts: Sequence[int], kernel: Sequence[int], strides: Sequence[int],
    dilations: Sequence[int], pads: Sequence[tuple[int, int]], *, include: bool,
) -> AnyArray:  # fmt: skip
    """Elements of each window that count: those of the input, or those of the pads as well."""
    total = np.ones(())
    for extent, count, size, stride, dilation, (begin, end) in zip(
        extents, counts, kernel, strides, dilations, pads, strict=True
    ):
        places = np.arange(count)[:, None] * stride - begin + np.arange(size) * dilation
        low, high = (-begin, extent + end) if include else (0, extent)
        total = total[..., None] * np.count_nonzero((places >= low) & (places < high), axis=1)
    return np.maximum(total, 1)


def global_pool(node: OnnxNode, to: Context) -> None:
    """Over all axes behind the channels."""
    s = Steps(node, to)
    x = s.operand(0)
    axes = list(range(2, len(s.shape(x))))
    if node.op == "GlobalLpPool":
        p = float(s.attribute("p", 2))
        total = s.reduce(s.map(("pow", ("abs", "a"), p), x), axes, "sum")
        s.end(s.map(("pow", "a", 1 / p), total))
    else:
        s.end(s.reduce(x, axes, "max" if node.op == "GlobalMaxPool" else "mean"))
