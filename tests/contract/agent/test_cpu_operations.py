"""Every CPU operation equals the NumPy reference on fresh random inputs of random shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from kernels.ir.graph import Node
from kernels.ir.resampling import PAD_MODES, ratio
from kernels.lower.cpu.agent_operations import CPU_OPERATIONS
from kernels.reference import OPERATIONS

from .calls import Calls, moved, noise
from .driver import Agent
from .plans import Array

CASES = 24
ACTIVATIONS: list[tuple[Any, ...] | None] = [
    None,
    ("relu",),
    ("clip", -0.25, 0.5),
    ("sigmoid",),
    ("leaky_relu", 0.2),
    ("hard_sigmoid", 0.3, 0.4),
    ("hard_swish",),
]


@pytest.fixture
def draw(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def reference(op: str, inputs: Sequence[Array | None], shape: tuple[int, ...], **attributes: Any) -> Any:
    wide = [None if array is None else array.astype(np.float64) for array in inputs]
    return OPERATIONS[op](Node("n", op, (), (), attributes), wide, shape)


def scalars(activation: tuple[Any, ...] | None) -> tuple[dict[str, int], dict[str, float]]:
    bounds = (*(activation or ())[1:], 0.0, 0.0)
    return {"activation": ACTIVATIONS.index(activation)}, {"lo": bounds[0], "hi": bounds[1]}


def size(extent: int, pads: int, kernel: int, stride: int, dilation: int = 1) -> int:
    return (extent + pads - (kernel - 1) * dilation - 1) // stride + 1


def with_bound(op: str, inputs: Sequence[Array | None], shape: tuple[int, ...], **attributes: Any) -> Any:
    """Return a sum of products behind an activation, and its error's bound: 32 roundings of the sum of absolutes."""
    absolute = [None if array is None else np.abs(array) for array in inputs]
    bound = 2.0**-19 * reference(op, absolute, shape, **attributes | {"activation": None})
    return np.stack([reference(op, inputs, shape, **attributes), bound])


def compare(results: Sequence[Array], expected: Sequence[Any]) -> None:
    """Compare with what is wanted: within the bound that is given with it, or what such operations come to."""
    assert len(results) == len(expected)
    for number, (result, want) in enumerate(zip(results, expected, strict=True)):
        want, near = want if want.ndim > result.ndim else (want, 2e-5 * max(1.0, float(np.abs(want).max(initial=0))))
        assert (np.abs(result - want) <= near + 2e-4 * np.abs(want)).all(), f"call {number}"


def test_every_operation_is_known(agent: Agent) -> None:
    """The agent's own list, as it tells it in an error, is the contract's."""
    calls = Calls("affine")
    one = {"n": 1, "c": 1, "hw": 1, "lanes": 1, "activation": 0}
    calls.add({"src": noise(np.random.default_rng(0), 1), "scale": None, "shift": None}, one, (1,))
    bundle = calls.bundle()
    programs = [bundle.plan.programs[0].model_copy(update={"kernel": "?"})]
    bundle.plan = bundle.plan.model_copy(update={"programs": tuple(programs)})
    names = agent.run(bundle, {}).error.message.split("there are: ")[1]
    assert set(names.split(", ")) == set(CPU_OPERATIONS)


def conv_case(calls: Calls, draw: np.random.Generator, groups: int, per_group: int, outputs: int, kernel: int) -> Any:
    """Add one random convolution; returns the expected destination."""
    n, c, k = int(draw.integers(1, 3)), groups * per_group, groups * outputs
    kh, kw = kernel, int(draw.integers(1, kernel + 1))
    (sh, sw), (dh, dw) = draw.integers(1, 4, 2).tolist(), draw.integers(1, 3, 2).tolist()
    top, left, bottom, right = draw.integers(0, kernel, 4).tolist()
    h, w = (int(draw.integers(dh * kh, 40)), int(draw.integers(dw * kw, 40)))
    oh, ow = size(h, top + bottom, kh, sh, dh), size(w, left + right, kw, sw, dw)
    offset = int(draw.integers(0, 4))
    channels = k + offset + int(draw.integers(0, 3))
    x, weight = noise(draw, n, c, h, w), noise(draw, k, per_group, kh, kw) / np.float32(per_group * kh * kw) ** 0.5
    bias = noise(draw, k) if draw.random() < 0.7 else None
    residual = noise(draw, n, k, oh, ow) if draw.random() < 0.5 else None
    activation = ACTIVATIONS[draw.integers(0, len(ACTIVATIONS))]
    ints, floats = scalars(activation)
    ints |= {
        "n": n, "c": c, "h": h, "w": w, "k": k, "oh": oh, "ow": ow, "kh": kh, "kw": kw, "sh": sh, "sw": sw,
        "pad_t": top, "pad_l": left, "dh": dh, "dw": dw, "groups": groups, "has_bias": int(bias is not None),
        "has_residual": int(residual is not None), "dst_channels": channels, "dst_offset": offset,
    }  # fmt: skip
    operands = {"src": x, "weight": weight, "bias": bias, "residual": residual}
    if calls.operation == "conv2d_im2col":  # what is in there before does not matter
        operands["columns"] = noise(draw, per_group * kh * kw, oh * ow)
    calls.add(operands, ints, (n, channels, oh, ow), floats)
    geometry = {"strides": (sh, sw), "pads": (top, left, bottom, right), "dilations": (dh, dw), "groups": groups}
    expected = np.zeros((2, n, channels, oh, ow))
    expected[:, :, offset : offset + k] = with_bound(
        "conv", [x, weight, bias, residual], (n, k, oh, ow), activation=activation, **geometry
    )
    return expected


CONVOLUTIONS = ["conv2d", "conv2d_im2col", "conv2d_sequential"]


@pytest.mark.parametrize("operation", CONVOLUTIONS)
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_conv2d(agent: Agent, draw: np.random.Generator, threads: int, operation: str) -> None:
    calls = Calls(operation)
    expected = [
        conv_case(calls, draw, 1, int(draw.integers(1, 70)), int(draw.integers(1, 70)), int(draw.choice([1, 3, 5])))
        for _ in range(CASES)
    ]
    compare(calls.run(agent, "--threads", threads), expected)


@pytest.mark.parametrize("operation", CONVOLUTIONS)
def test_conv2d_in_groups(agent: Agent, draw: np.random.Generator, operation: str) -> None:
    calls = Calls(operation)
    expected = [
        conv_case(calls, draw, int(draw.integers(2, 9)), int(draw.integers(1, 5)), int(draw.integers(1, 9)), 3)
        for _ in range(CASES)
    ]
    compare(calls.run(agent), expected)


def test_conv2d_of_one_pixel_and_of_many_channels(agent: Agent, draw: np.random.Generator) -> None:
    calls = Calls("conv2d")
    expected = []
    for c, k, side in ((600, 33, 1), (257, 100, 7), (3, 17, 31)):
        x, weight = noise(draw, 1, c, side, side), noise(draw, k, c, 1, 1)
        ints = dict.fromkeys(("n", "kh", "kw", "sh", "sw", "dh", "dw", "groups"), 1) | dict.fromkeys(
            ("pad_t", "pad_l", "has_bias", "has_residual", "activation", "dst_offset"), 0
        )
        ints |= {"c": c, "h": side, "w": side, "k": k, "oh": side, "ow": side, "dst_channels": k}
        calls.add({"src": x, "weight": weight, "bias": None, "residual": None}, ints, (1, k, side, side))
        expected.append(np.einsum("kc,nchw->nkhw", weight[:, :, 0, 0].astype(np.float64), x))
    compare(calls.run(agent), expected)


def test_dense_by_its_definition(agent: Agent, draw: np.random.Generator) -> None:
    calls, expected = Calls("dense_sequential"), []
    for _ in range(CASES):
        n, c, m = int(draw.integers(1, 12)), int(draw.integers(1, 600)), int(draw.integers(1, 300))
        x, weight = noise(draw, n, c), noise(draw, c, m)
        bias, activation = (
            noise(draw, m) if draw.random() < 0.7 else None,
            ACTIVATIONS[draw.integers(0, len(ACTIVATIONS))],
        )
        ints, floats = scalars(activation)
        ints |= {"n": n, "c": c, "m": m, "has_bias": int(bias is not None)}
        calls.add({"src": x, "weight": weight, "bias": bias}, ints, (n, m), floats)
        expected.append(with_bound("dense", [x, weight, bias], (n, m), activation=activation))
    compare(calls.run(agent), expected)


def test_matmul(agent: Agent, draw: np.random.Generator) -> None:
    calls, expected = Calls("matmul"), []
    for _ in range(CASES):
        batch, m, k, n = draw.integers(1, [4, 70, 600, 150]).tolist()
        a, b = noise(draw, batch, m, k), noise(draw, batch, k, n)
        calls.add({"a": a, "b": b}, {"batch": batch, "m": m, "k": k, "n": n}, (batch, m, n))
        expected.append(with_bound("matmul", [a, b], (batch, m, n)))
    compare(calls.run(agent), expected)


def test_products(agent: Agent, draw: np.random.Generator) -> None:
    """Either operand either way round, as part of longer rows: of sizes that fill no tile, no panel and no square."""
    calls, expected = Calls("product"), []
    for case in range(2 * CASES):
        rows, depth, columns = draw.integers(1, [4 if case // 4 % 2 else 70, 400, 100]).tolist()
        more, a_turned, b_turned = int(draw.integers(0, 3)), case % 2, case // 2 % 2
        has_bias, activation = draw.integers(0, [2, 2]).tolist()
        a, b = noise(draw, rows, depth), noise(draw, depth, columns)
        bias = noise(draw, columns) if has_bias else None
        lie = [np.ascontiguousarray(x.T) if turned else x for x, turned in ((a, a_turned), (b, b_turned))]
        lie = [np.pad(x, ((0, 0), (0, more)), constant_values=np.nan) for x in lie]
        ints = {
            "rows": rows, "depth": depth, "columns": columns, "a_stride": lie[0].shape[1], "b_stride": lie[1].shape[1],
            "a_turned": a_turned, "b_turned": b_turned, "has_bias": has_bias, "activation": activation,
        }  # fmt: skip
        operands = {"a": lie[0], "b": lie[1], "bias": bias}
        calls.add(operands, ints, (rows, columns), {"lo": 0.0, "hi": 0.0})
        activated = ("relu",) if activation else None
        expected.append(with_bound("dense", [a, b, bias], (rows, columns), activation=activated))
    compare(calls.run(agent), expected)


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_pool2d(agent: Agent, draw: np.random.Generator, mode: int) -> None:
    calls, expected = Calls("pool2d"), []
    for _ in range(CASES):
        n, c, h, w = draw.integers([1, 1, 5, 5], [3, 9, 40, 40]).tolist()
        (kh, kw), (sh, sw) = draw.integers(1, 5, 2).tolist(), draw.integers(1, 4, 2).tolist()
        pads = [int(draw.integers(0, extent)) for extent in (kh, kw, kh, kw)]
        top, left, bottom, right = pads
        oh, ow = size(h, top + bottom, kh, sh), size(w, left + right, kw, sw)
        if draw.random() < 0.5:  # ceil_mode: one window more, as long as it begins inside
            oh, ow = oh + int(oh * sh < h + top), ow + int(ow * sw < w + left)
        x, offset = noise(draw, n, c, h, w), int(draw.integers(0, 3))
        ints = {
            "n": n, "c": c, "h": h, "w": w, "oh": oh, "ow": ow, "kh": kh, "kw": kw, "sh": sh, "sw": sw, "mode": mode,
            "pad_t": top, "pad_l": left, "pad_b": bottom, "pad_r": right, "dst_channels": c + 2, "dst_offset": offset,
        }  # fmt: skip
        calls.add({"src": x}, ints, (n, c + 2, oh, ow))
        attributes = {"kernel": (kh, kw), "strides": (sh, sw), "pads": pads, "count_include_pad": int(mode == 2)}
        want = np.zeros((n, c + 2, oh, ow))
        want[:, offset : offset + c] = reference(
            "average_pool" if mode else "max_pool", [x], (n, c, oh, ow), **attributes
        )
        expected.append(want)
    compare(calls.run(agent), expected)


def test_softmax(agent: Agent, draw: np.random.Generator) -> None:
    calls, expected = Calls("softmax"), []
    for _ in range(CASES):
        outer, axis, inner = draw.integers(1, [8, 1000, 8]).tolist()
        x = noise(draw, outer, axis, inner) * 20
        calls.add({"src": x}, {"outer": outer, "axis": axis, "inner": inner}, x.shape)
        expected.append(reference("softmax", [x], x.shape, axis=1))
    compare(calls.run(agent), expected)


@pytest.mark.parametrize("threads", [1, 3])
def test_row_norm(agent: Agent, draw: np.random.Generator, threads: int) -> None:
    calls, expected = Calls("row_norm"), []
    for index in range(CASES):
        rows, columns = int(draw.integers(1, 9)), int(draw.integers(1, 600))
        x, scale, shift = noise(draw, rows, columns) + 3, noise(draw, columns), noise(draw, columns)
        beside = noise(draw, rows, columns) if draw.random() < 0.5 else None
        operands = {"src": x, "scale": scale, "shift": shift, "beside": beside}
        centred, least = index % 2, 4.0 * (index % 3 == 0)
        ints = {"rows": rows, "columns": columns, "centred": centred, "added": beside is not None}
        calls.add(operands, ints, (rows, columns), {"epsilon": 1e-3, "least": least})
        wide = x.astype(np.float64)
        distance = wide - centred * wide.mean(1, keepdims=True)
        root = np.sqrt((distance**2).mean(1, keepdims=True) + 1e-3)
        found = distance / np.maximum(root, least) * scale + shift
        expected.append(found if beside is None else found + beside)
    compare(calls.run(agent, "--threads", threads), expected)


@pytest.mark.parametrize("op", ["append", "attend"])
def test_a_cache(agent: Agent, draw: np.random.Generator, op: str) -> None:
    """Draw rows that lie in wider ones, normalised and turned or not; what is behind the valid places is infinite, and
    what is before the new ones not written."""
    calls, expected, written, attends = Calls(op), [], [], op == "attend"
    for _ in range(CASES):
        images, shared, rows, depth, columns = (int(each) for each in draw.integers(1, [4, 4, 8, 40, 40]))
        capacity, heads = rows + int(draw.integers(0, 300)), shared * int(draw.integers(1, 4)) if attends else shared
        turned, by_place, normed = 2 * int(draw.integers(0, depth // 2 + 1)), bool(draw.integers(2)), draw.integers(2)
        width, first = heads * depth + int(draw.integers(0, 3)), int(draw.integers(0, 3))
        x = noise(draw, first + images * rows * width)
        place = (first, rows * width, depth, width)
        ends = draw.integers(rows - 1, capacity, images).astype(draw.choice(["<i4", "<i8"]))
        valid = (np.arange(capacity) < ends[:, None] + 1)[:, None, :, None]
        cache = [
            np.where(valid, noise(draw, images, shared, capacity, n), np.inf).astype(np.float32)
            for n in ((depth, columns) if attends else (depth,))
        ]
        places = int(draw.integers(1, capacity + 1)) if by_place else int(draw.integers(1, images + 1))
        angles = (places, turned // 2) if by_place else (places, rows, turned // 2)
        cosines, sines = (noise(draw, *angles) if turned else None for _ in range(2))
        scale = noise(draw, depth) if normed else None
        a = {"rows": rows, "place": place, "turned": turned, "by_place": by_place, "normed": normed, "epsilon": 0.01}
        more = {"window": int(draw.integers(0, 20)), "scale": 0.4, "softcap": float(draw.choice([0.0, 1.5]))}
        operands = [x, *cache] if attends else [*cache, x]
        names = ("q", "k", "v") if attends else ("src",)
        shape = (images, rows, heads * columns) if attends else (images, shared, capacity, depth)
        given = dict(zip(names, operands[not attends :], strict=True))
        given |= {"ends": ends, "cosines": cosines, "sines": sines}
        ints = {"images": images, "heads": heads, "capacity": capacity, "depth": depth, "rows": rows, "turned": turned}
        ints |= dict(zip(("start", "image", "head", "row"), place, strict=True))
        ints |= {"by_place": by_place, "normed": normed, "places": places, "batches": places}
        ints |= {"shared": shared, "columns": columns, "window": more["window"]}
        calls.add({**given, "norm": scale}, ints, shape, {"epsilon": 0.01, **more})
        want = reference(op, [*operands, ends, cosines, sines, scale], shape, **a, **more, heads=heads)
        fresh = (np.arange(capacity) - ends[:, None])[:, None, :, None]
        written.append(... if attends else np.broadcast_to((fresh > -rows) & (fresh <= 0), shape))
        expected.append(want[written[-1]])
    found = zip(calls.run(agent, "--threads", 2), written, strict=True)
    compare([each[mask].astype(np.float32) for each, mask in found], expected)


@pytest.mark.parametrize("threads", [1, 3])
def test_attention(agent: Agent, draw: np.random.Generator, threads: int) -> None:
    """One layer writes q, k and v side by side in one row, heads in each; the result is by heads or rows."""
    calls, expected = Calls("attention"), []
    for _ in range(CASES):
        images, heads, rows, depth, columns = (int(each) for each in draw.integers(1, 8, 5))
        keys = int(draw.integers(1, 400))
        width = heads * (2 * depth + columns) + int(draw.integers(0, 3))
        lines = max(rows, keys)
        x = noise(draw, images, lines, width)
        by_rows = bool(draw.random() < 0.5)
        ints = {"images": images, "heads": heads, "rows": rows, "keys": keys, "depth": depth, "columns": columns}
        starts = {"q": 0, "k": heads * depth, "v": 2 * heads * depth}
        for name, start in starts.items():
            head = columns if name == "v" else depth
            ints |= _place(name, start, lines * width, head, width)
        shape = (images, rows, heads, columns) if by_rows else (images, heads, rows, columns)
        steps = (columns, heads * columns) if by_rows else (rows * columns, columns)
        ints |= _place("dst", 0, rows * heads * columns, *steps)
        calls.add({"q": x, "k": x, "v": x}, ints, shape, {"scale": 0.7})
        q, k, v = (
            x[:, :count, start : start + heads * of_head]
            .reshape(images, count, heads, of_head)
            .swapaxes(1, 2)
            .astype(np.float64)
            for start, count, of_head in zip(starts.values(), (rows, keys, keys), (depth, depth, columns), strict=True)
        )
        scores = np.exp(0.7 * q @ k.swapaxes(2, 3))
        out = scores / scores.sum(3, keepdims=True) @ v
        expected.append(out.swapaxes(1, 2) if by_rows else out)
    compare(calls.run(agent, "--threads", threads), expected)


def _place(name: str, *numbers: int) -> dict[str, int]:
    return {f"{name}_{part}": number for part, number in zip(("start", "image", "head", "row"), numbers, strict=True)}


@pytest.mark.parametrize("op", [0, 1])
@pytest.mark.parametrize("mode", [0, 1, 2])
def test_binary(agent: Agent, draw: np.random.Generator, op: int, mode: int) -> None:
    calls, expected = Calls("binary"), []
    for _ in range(CASES):
        shape = tuple(draw.integers(1, [5, 30, 400]).tolist())
        a, b = noise(draw, *shape), noise(draw, *(shape, (shape[1],), (1,))[mode])
        activation = ACTIVATIONS[draw.integers(0, len(ACTIVATIONS))]
        ints, floats = scalars(activation)
        ints |= {"op": op, "mode": mode, **dict(zip(("outer", "axis", "inner"), shape, strict=True))}
        calls.add({"a": a, "b": b}, ints, shape, floats)
        operands = [a, b[:, None] if mode == 1 else b]
        expected.append(reference("mul" if op else "add", operands, shape, activation=activation))
    compare(calls.run(agent), expected)


def _side_by_side(x: Array, lanes: int) -> Array:
    """(n, c, hw) -> (n, c / lanes, hw, lanes)."""
    n, c, hw = x.shape
    return np.ascontiguousarray(x.reshape(n, c // lanes, lanes, hw).transpose(0, 1, 3, 2))


def test_affine(agent: Agent, draw: np.random.Generator) -> None:
    calls, expected = Calls("affine"), []
    for _ in range(CASES):
        n, planes, hw = draw.integers(1, [4, 10, 300]).tolist()
        lanes = int(draw.choice([1, 16]))
        c = planes * lanes
        x, scale, shift = noise(draw, n, c, hw), noise(draw, c), noise(draw, c)
        activation = ACTIVATIONS[draw.integers(0, len(ACTIVATIONS))]
        ints, floats = scalars(activation)
        given = _side_by_side(x, lanes)
        calls.add(
            {"src": given, "scale": scale, "shift": shift}, {**ints, "n": n, "c": c, "hw": hw, "lanes": lanes},
            given.shape, floats,
        )  # fmt: skip
        expected.append(_side_by_side(reference("affine", [x, scale, shift], x.shape, activation=activation), lanes))
    compare(calls.run(agent), expected)


def test_instance_norm(agent: Agent, draw: np.random.Generator) -> None:
    calls, expected = Calls("instance_norm"), []
    for _ in range(CASES):
        n, c, h, w = draw.integers([1, 1, 2, 4], [4, 40, 20, 20]).tolist()
        x, scale, shift = noise(draw, n, c, h, w) + 5, noise(draw, c), noise(draw, c)
        activation = ACTIVATIONS[draw.integers(0, len(ACTIVATIONS))]
        ints, floats = scalars(activation)
        groups = int(draw.choice([each for each in range(1, c + 1) if c % each == 0]))
        ints |= {"n": n, "c": c, "hw": h * w, "groups": groups}
        calls.add({"src": x, "scale": scale, "shift": shift}, ints, x.shape, {**floats, "epsilon": 0.01})
        how = {"epsilon": 0.01, "groups": groups, "activation": activation}
        expected.append(reference("instance_norm", [x, scale, shift], x.shape, **how))
    compare(calls.run(agent), expected)


@pytest.mark.parametrize("mode", list(PAD_MODES))
def test_pad2d(agent: Agent, draw: np.random.Generator, mode: str) -> None:
    calls, expected = Calls("pad2d"), []
    for _ in range(CASES):
        n, c, h, w = draw.integers(1, [3, 6, 12, 12]).tolist()
        limits = (h, w, h, w) if mode == "reflect" else (9, 9, 9, 9)
        top, left, bottom, right = pads = draw.integers(0, limits).tolist()
        x, shape = noise(draw, n, c, h, w), (n, c, h + top + bottom, w + left + right)
        ints = {"planes": n * c, "h": h, "w": w, "mode": PAD_MODES[mode]}
        ints |= dict(zip(("pad_t", "pad_l", "pad_b", "pad_r"), pads, strict=True))
        calls.add({"src": x}, ints, shape, {"value": -0.75})
        expected.append(reference("pad", [x], shape, pads=pads, mode=mode, value=-0.75))
    compare(calls.run(agent), expected)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("coordinates", ["half_pixel", "asymmetric", "align_corners"])
def test_resize2d(agent: Agent, draw: np.random.Generator, mode: str, coordinates: str) -> None:
    if (mode, coordinates) == ("nearest", "align_corners"):
        return  # no such way of resizing
    calls, expected = Calls("resize2d"), []
    for _ in range(CASES):
        n, c, h, w, oh, ow = draw.integers(1, [3, 6, 12, 12, 30, 30]).tolist()
        x, ints = noise(draw, n, c, h, w), {"planes": n * c, "h": h, "w": w, "oh": oh, "ow": ow}
        for axis, extent, size_ in (("y", h, oh), ("x", w, ow)):
            way = ratio(mode, coordinates, extent, size_)
            ints |= {f"step_{axis}": way.step, f"start_{axis}": way.start, f"divisor_{axis}": way.divisor}
        calls.add({"src": x}, {**ints, "linear": int(mode == "linear")}, (n, c, oh, ow))
        expected.append(reference("resize", [x], (n, c, oh, ow), size=(oh, ow), mode=mode, coordinates=coordinates))
    compare(calls.run(agent), expected)


@pytest.mark.parametrize("threads", [1, 3])
def test_take_turns_axes_and_leaves_room(agent: Agent, draw: np.random.Generator, threads: int) -> None:
    calls, expected = Calls("take"), []
    for index in range(CASES):
        rank = int(draw.integers(1, 5))
        extents, perm = draw.integers(1, [40, 9, 40, 40][:rank]).tolist(), draw.permutation(rank).tolist()
        x = noise(draw, *extents)
        start, after = draw.integers(0, 7, 2).tolist() if index % 2 else (0, 0)
        given = None if start else np.zeros(1, np.int32)
        want = x.transpose(perm)
        want = np.pad(want, [(0, 0)] * (rank - 1) + [(start, after)])
        ints = moved(perm, extents, 0, start, start + after)
        calls.add({"src": x, "table": given}, ints, want.shape)
        expected.append(want)
    compare(calls.run(agent, "--threads", threads), expected)


def test_nan_survives_activations_and_pooling(agent: Agent) -> None:
    x = np.array([1.0, np.nan, -2.0, 3.0], np.float32)
    calls = Calls("binary")
    for activation in ACTIVATIONS[1:]:
        ints, floats = scalars(activation)
        ints |= {"op": 1, "mode": 2, "outer": 1, "axis": 4, "inner": 1}
        calls.add({"a": x, "b": np.ones(1, np.float32)}, ints, (4,), floats)
    assert all(np.isnan(result[1]) for result in calls.run(agent))
