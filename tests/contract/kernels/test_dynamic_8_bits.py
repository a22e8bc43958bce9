"""Models in 8 bits as onnxruntime's tools write them, with fp32 asked for: drawn at random, they are computed in 8 bits
on a CPU that has instructions for it, and everywhere what onnxruntime computes without its optimiser."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import NodeProto, TensorProto, helper, numpy_helper

from kernels.compile import compile_graph
from kernels.frontend.onnx import load_onnx
from kernels.options import Backend, Options
from tests.contract.agent.driver import Agent
from tests.unit.kernels.front.onnx_models import run_onnxruntime

from .onnx_cases import limits_here

Array = np.ndarray[Any, Any]
IN_8_BITS = {"conv2d_int8", "dense_int8", "depthwise_int8"}
make = helper.make_node


class Drawn:
    """A model that is drawn, and its inputs."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng, self.nodes, self.constants = rng, list[NodeProto](), dict[str, Array]()
        self.inputs: dict[str, Array] = {}
        self.whole, self.in_8_bits, self.way = False, True, ""

    def any(self, *choices: Any) -> Any:
        return choices[self.rng.integers(len(choices))]

    def store(self, name: str, value: Any) -> str:
        self.constants[name] = np.asarray(value)
        return name

    def input(self, *shape: int) -> str:
        centre, size = self.rng.uniform(-1, 1), 10.0 ** self.rng.uniform(-2, 2)
        self.inputs["x"] = (size * (self.rng.standard_normal(shape) + centre)).astype(np.float32)
        return "x"

    def weight(self, name: str, shape: tuple[int, ...], channels: int, kind: Any = None) -> list[str]:
        """Its whole numbers, scales and zeros, of one or of each channel."""
        kind = kind or self.any(np.int8, np.uint8)
        low, high = np.iinfo(kind).min, np.iinfo(kind).max
        count = self.any(1, channels)
        zero = (
            np.zeros(count, kind) if self.rng.random() < 0.4 else self.rng.integers(low, high + 1, count).astype(kind)
        )
        scale = self.rng.uniform(0.001, 0.1, count).astype(np.float32)
        if count == 1:
            zero, scale = zero.reshape(()), scale.reshape(())
        whole = self.rng.integers(low, high + 1, shape).astype(kind)
        return [self.store(name, whole), self.store(f"{name}.s", scale), self.store(f"{name}.z", zero)]

    def rounded(self, x: str) -> list[str]:
        self.nodes.append(make("DynamicQuantizeLinear", [x], ["q", "q.s", "q.z"]))
        return ["q", "q.s", "q.z"]

    def scaled(self, scale: str, channels: int, rank: int) -> None:
        """The product as floats, with a bias or without, or as it is."""
        if self.rng.random() < 0.15:
            self.whole, self.in_8_bits = True, False
            self.nodes.append(make("Identity", ["p"], ["y"]))
            return
        by = self.constants[scale]
        if by.ndim and rank > 3:  # of filters
            self.constants[scale] = by.reshape(-1, *(1,) * (rank - 2))
        pair = self.any(["q.s", scale], [scale, "q.s"])
        last = self.any("y", "scaled")
        self.nodes += [
            make("Mul", pair, ["both"]),
            make("Cast", ["p"], ["f"], to=TensorProto.FLOAT),
            make("Mul", self.any(["f", "both"], ["both", "f"]), [last]),
        ]
        if last != "y":
            shape = (channels, *(1,) * (rank - 2)) if rank > 3 else (channels,)
            bias = self.store("b", self.rng.standard_normal(shape).astype(np.float32))
            self.nodes.append(make("Add", [last, bias], ["y"]))

    def product(self) -> None:
        depth, columns = int(self.any(1, 3, 20, 384, 3000)), int(self.rng.integers(1, 70))
        rows = tuple(map(int, self.rng.integers(1, 15, self.rng.integers(1, 3))))
        q, _, zero = self.rounded(self.input(*rows, depth))
        w, scale, of_w = self.weight("w", (depth, columns), columns)
        self.nodes.append(make("MatMulInteger", [q, w, zero, of_w], ["p"]))
        self.scaled(scale, columns, 2)

    def convolution(self) -> None:
        groups, multiple = self.any((1, 1), (1, 1), (2, 16), (8, 1), (3, 2))
        c = groups * multiple * (int(self.rng.integers(1, 40)) if groups == 1 else 1)
        filters = groups * multiple * (int(self.rng.integers(1, 40)) if groups == 1 else self.any(1, 2))
        window = tuple(map(int, self.rng.integers(1, 4, 2)))
        pads = [int(self.rng.integers(size)) for size in (*window, *window)]
        attributes = {"group": groups, "pads": pads, "strides": self.any([1, 1], [2, 1], [2, 2])}
        q, _, zero = self.rounded(self.input(int(self.rng.integers(1, 3)), c, 9, 8))
        w, scale, of_w = self.weight("w", (filters, c // groups, *window), filters)
        if self.constants[of_w].ndim:  # onnxruntime takes one for all
            self.constants[of_w] = self.constants[of_w][0]
        self.nodes.append(make("ConvInteger", [q, w, zero, of_w], ["p"], **attributes))
        self.scaled(scale, filters, 4)
        self.in_8_bits &= groups == 1 or multiple == 16 or groups == c

    def static(self) -> None:
        """QLinearConv or QLinearMatMul between QuantizeLinear and DequantizeLinear."""
        kind, filters = self.any(np.int8, np.uint8), int(self.rng.integers(1, 40))
        low = np.iinfo(kind).min
        ends = []
        for name in ("q", "r"):
            ends.append([self.store(f"{name}.s", np.float32(self.rng.uniform(0.01, 0.1)))])
            ends[-1].append(self.store(f"{name}.z", kind(self.rng.integers(256) + low)))
        if self.rng.random() < 0.5:
            x = self.input(1, 20, 7, 7)
            w = self.weight("w", (filters, 20, 3, 3), filters)
            self.constants["w.z"] = np.zeros_like(self.constants["w.z"])
            bias = [self.store("b", self.rng.integers(-(1 << 20), 1 << 20, filters).astype(np.int32))]
            attributes, op = {"pads": [1, 0, 0, 1]}, "QLinearConv"
        else:
            x, w = self.input(5, 50), self.weight("w", (50, filters), filters)
            bias, attributes, op = [], {}, "QLinearMatMul"
        if kind == np.int8 and self.constants["w"].dtype == np.uint8:  # onnxruntime has no such product
            self.constants |= {
                "w": self.constants["w"].astype(np.int8),
                "w.z": np.zeros_like(self.constants["w.z"], np.int8),
            }
        self.nodes += [
            make("QuantizeLinear", [x, *ends[0]], ["q"]),
            make(op, ["q", *ends[0], *w, *ends[1], *bias], ["r"], **attributes),
            make("DequantizeLinear", ["r", *ends[1]], ["y"]),
        ]

    def recurrent(self) -> None:
        """DynamicQuantizeLSTM, of one scale and zero a direction."""
        steps, batch, width, hidden = (int(self.rng.integers(1, most)) for most in (7, 4, 20, 30))
        self.way, directions = self.any(("forward", 1), ("reverse", 1), ("bidirectional", 2))
        x, kind, both = self.input(steps, batch, width), self.any(np.int8, np.uint8), []
        for name, depth in (("w", width), ("r", hidden)):
            both.append(self.weight(name, (directions, depth, 4 * hidden), directions, kind))
            self.constants[f"{name}.s"] = self.rng.uniform(1e-4, 1e-3, directions).astype(np.float32)
            self.constants[f"{name}.z"] = np.resize(self.constants[f"{name}.z"], directions)
        bias = self.store("b", (0.1 * self.rng.standard_normal((directions, 8 * hidden))).astype(np.float32))
        inputs = [x, both[0][0], both[1][0], bias, "", "", "", "", *both[0][1:], *both[1][1:]]
        node = make(
            "DynamicQuantizeLSTM", inputs, ["y"], domain="com.microsoft", hidden_size=hidden, direction=self.way
        )
        self.nodes.append(node)

    def save(self, path: Path) -> Path:
        kind = TensorProto.INT32 if self.whole else TensorProto.FLOAT
        graph = helper.make_graph(
            self.nodes,
            "drawn",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, self.inputs["x"].shape)],
            [helper.make_tensor_value_info("y", kind, None)],
            [numpy_helper.from_array(array, name) for name, array in self.constants.items()],
        )
        domains = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
        path.write_bytes(helper.make_model(graph, opset_imports=domains, ir_version=8).SerializeToString())
        return path


FP32 = 2.0**-22
"""The largest error of a function in fp32, as a share of 1 or of the numbers that it adds up."""


def exact_lstm(drawn: Drawn) -> tuple[Array, Array]:
    """Return the layer's states in double, and how far fp32 may be from each. What lies near a tie of the quantiser may
    come out a step higher or lower, which goes on through the steps behind."""
    k, x = drawn.constants, drawn.inputs["x"].astype(np.float64)
    steps, batch, _ = x.shape
    directions, hidden, _ = k["r"].shape
    backwards = {"forward": (0,), "reverse": (1,), "bidirectional": (0, 1)}[drawn.way]
    found, near = np.zeros((2, steps, directions, batch, hidden))
    for d in range(directions):
        w, r = ((k[n][d].astype(np.float64) - k[f"{n}.z"][d]) * k[f"{n}.s"][d] for n in ("w", "r"))
        bias = k["b"][d].reshape(2, -1).sum(axis=0, dtype=np.float64)
        in_8, off = in_steps(x, np.zeros_like(x))
        ahead, off_ahead = in_8 @ w + bias, (off + FP32 * np.abs(in_8)) @ np.abs(w) + FP32 * np.abs(bias)
        h, c, off_h, off_c = np.zeros((4, batch, hidden))
        for t in range(steps)[:: -1 if backwards[d] else 1]:
            in_8, off = in_steps(h, off_h)
            z = np.split(ahead[t] + in_8 @ r, 4, axis=1)
            off_z = np.split(off_ahead[t] + (off + FP32 * np.abs(in_8)) @ np.abs(r), 4, axis=1)
            i, o, f = (1 / (1 + np.exp(-each)) for each in z[:3])
            off_i, off_o, off_f = (np.minimum(each / 4, 1) + FP32 for each in off_z[:3])
            g, off_g = np.tanh(z[3]), np.minimum(off_z[3], 2) + FP32
            off_c = (f + off_f) * off_c + np.abs(c) * off_f + (i + off_i) * off_g + np.abs(g) * off_i
            c = f * c + i * g
            off_c += FP32 * np.abs(c)
            h, off_h = o * np.tanh(c), (o + off_o) * (np.minimum(off_c, 2) + FP32) + np.abs(np.tanh(c)) * off_o
            found[t, d], near[t, d] = h, off_h
    return found, near


def in_steps(x: Array, off: Array) -> tuple[Array, Array]:
    """Return numbers rounded to 256 steps of their range, and how far off these are where the numbers are off."""
    low, high = min(x.min(), 0.0), max(x.max(), 0.0)
    step = (high - low) / 255 or 1.0
    moved = min(2 * off.max() / 255, step)
    zero = np.clip(np.rint(-low / step), 0, 255)
    whole = np.clip(np.rint(x / step), -zero, 255 - zero)
    doubt = (off + np.abs(x) * moved / step) / step + 256 * FP32
    is_tie = np.minimum(*(np.abs(np.abs(each - np.rint(each)) - 0.5) for each in (x / step, low / step))) <= doubt
    return step * whole, np.abs(whole) * (moved + FP32 * step) + is_tie * (step + moved)


@pytest.mark.parametrize("form", ["product", "convolution", "static", "recurrent"])
@pytest.mark.parametrize("where", ["generic", "avx2", "avx512f", "opencl"])
def test_what_is_drawn_is_what_onnxruntime_computes(
    agent: Agent, tmp_path: Path, seed: int, form: str, where: str
) -> None:
    backend: Backend = "opencl" if where == "opencl" else "cpu"
    for draw in range(3 if backend == "cpu" else 1):  # a GPU computes them in single precision
        drawn = Drawn(np.random.default_rng([seed, draw, len(form), len(where)]))
        getattr(drawn, form)()
        path = drawn.save(tmp_path / "m.onnx")
        wanted = run_onnxruntime(path, drawn.inputs)["y"]
        limits = replace(limits_here(agent.binary, backend), int8_layers=drawn.any(True, True, False))
        bundle = compile_graph(load_onnx(path), Options(backend), limits)
        in_8_bits = bool(IN_8_BITS & {program.kernel for program in bundle.plan.programs})
        assert in_8_bits == (drawn.in_8_bits and backend == "cpu" and limits.int8_layers), f"{form}, draw {draw}"
        chosen: dict[str, Any] = {"POCKETFARM_CPU_ISA": where} if backend == "cpu" else {}
        threads = ["--threads", int(drawn.any(1, 2))] if backend == "cpu" else []
        ended = agent.run(bundle, drawn.inputs, "--warmup", 0, "--samples", 1, *threads, **chosen)
        if ended.code and "this processor has" in ended.error.message:
            pytest.skip(ended.error.message)
        assert ended.code == 0, ended.events[-1]
        found = ended.output(0).reshape(wanted.shape)
        if drawn.whole:
            assert np.array_equal(found, wanted)
            continue
        if form == "recurrent":
            exact, bound = exact_lstm(drawn)
            assert all((np.abs(each - exact) <= bound).all() for each in (found, wanted)), f"draw {draw}"
            continue
        step = drawn.constants["r.s"] if form == "static" else 0.0  # a tie may go to either of two numbers
        near = 1e-5 * np.abs(wanted).max() + 1e-9
        assert np.abs(found - wanted).max() <= near + 1.001 * step, f"{form}, draw {draw}"
        assert np.mean(np.abs(found - wanted) > near) < 0.01
