"""Chains of layers in 8 bits that hand on whole numbers: bit for bit what they give where every pair is computed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import NodeProto, helper

from kernels.compile import compile_graph
from kernels.frontend.onnx import load_onnx
from kernels.options import Backend, Limits, Options
from tests.contract.agent.driver import Agent
from tests.unit.kernels.front.onnx_models import run_onnxruntime, save_model

from .test_int8_models import in_8_bits

Array = np.ndarray[Any, Any]


class Chain:
    """Layers with QDQ pairs around, of random sizes and steps."""

    def __init__(self, rng: np.random.Generator, shape: tuple[int, int, int, int]) -> None:
        self.rng, self.shape, self.nodes = rng, shape, list[NodeProto]()
        self.constants: dict[str, Any] = {}
        self.pairs: list[str] = []

    def pair(self, source: str) -> str:
        """Add a pair with a step and a zero of its own, int8 or uint8."""
        name, kind = f"{source}.d", self.rng.choice([np.uint8, np.int8])
        zero = kind(np.iinfo(kind).min + self.rng.integers(60, 196))
        self.constants |= {f"{name}.s": np.float32(self.rng.uniform(0.005, 0.03)), f"{name}.z": zero}
        for op, read, to in (("Quantize", source, f"{name}.q"), ("Dequantize", f"{name}.q", name)):
            self.nodes.append(helper.make_node(f"{op}Linear", [read, f"{name}.s", f"{name}.z"], [to]))
        self.pairs.append(name)
        return name

    def conv(self, source: str, channels: int, k: int, **attributes: Any) -> str:
        """Add a convolution with weights on a grid."""
        name, groups = f"c{len(self.nodes)}", attributes.get("group", 1)
        window = attributes.get("kernel_shape", [1, 1])
        size = (k, channels // groups, *window)
        whole = self.rng.integers(-127, 128, size).astype(np.float32)
        step = self.rng.uniform(0.5, 1, (k, 1, 1, 1)).astype(np.float32) * np.float32(np.prod(size[1:]) ** -0.5 / 64)
        self.constants |= {f"{name}.w": whole * step, f"{name}.b": self.rng.standard_normal(k).astype(np.float32)}
        self.nodes.append(helper.make_node("Conv", [source, f"{name}.w", f"{name}.b"], [name], **attributes))
        return name

    def then(self, op: str, inputs: list[str], **attributes: Any) -> str:
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], **attributes))
        return name

    def normalised(self, source: str, channels: int) -> str:
        names = [f"{source}.{part}" for part in ("scale", "shift", "mean", "variance")]
        low = {"scale": 0.5, "shift": -0.5, "mean": -0.5, "variance": 0.5}
        for name in names:
            least = low[name.rsplit(".", 1)[1]]
            self.constants[name] = self.rng.uniform(least, least + 1, channels).astype(np.float32)
        return self.then("BatchNormalization", [source, *names])

    def block(self, source: str, channels: int, size: list[int]) -> tuple[str, int]:
        """1x1, one or more filters a channel, 1x1, and a sum with what it read where that fits."""
        wide, filters = channels * int(self.rng.integers(1, 4)), int(self.rng.integers(1, 4))
        a = self.then("Clip", [self.conv(source, channels, wide), "least", "most"])
        window, dilation = self.rng.integers(1, 6, 2), self.rng.integers(1, 3, 2)
        reach = (window - 1) * dilation
        strides = [int(self.rng.integers(1, 3))] * 2 if self.rng.random() < 0.4 else [1, 1]
        pads = [*(reach // 2).tolist(), *(reach - reach // 2).tolist()]
        attributes = {"kernel_shape": window.tolist(), "dilations": dilation.tolist(), "strides": strides, "pads": pads}
        b = self.conv(self.pair(a), wide, wide * filters, group=wide, **attributes)
        b = self.then("Relu", [b]) if self.rng.random() < 0.5 else self.then("HardSwish", [b])
        keeps = strides == [1, 1]
        out = channels if keeps else int(self.rng.integers(1, 40))
        c = self.conv(self.pair(b), wide * filters, out)
        if self.rng.random() < 0.5:
            c = self.normalised(self.pair(c), out)
        if keeps:
            other = source if self.rng.random() < 0.6 else source.removesuffix(".d")  # whose floats stay, too
            c = self.then("Add", [self.pair(c), other][:: int(self.rng.choice([1, -1]))])
        size[:] = [-(-extent // strides[0]) for extent in size]
        return self.pair(c), out

    def fire(self, source: str, channels: int) -> tuple[str, int]:
        """Two layers side by side, each with a pair of its own or none, joined."""
        first, second = 16 * int(self.rng.integers(1, 3)), int(self.rng.integers(1, 40))
        parts = [self.conv(source, channels, first), self.conv(source, channels, second)]
        parts = [self.pair(part) if self.rng.random() < 0.5 else part for part in parts]
        return self.pair(self.then("Concat", parts, axis=1)), first + second


@pytest.mark.parametrize("where", ["generic", "avx2", "avx512f", "opencl", "vulkan"])
def test_whole_numbers_are_handed_on(agent: Agent, tmp_path: Path, seed: int, where: str) -> None:
    """A GPU computes as the CPU does, to the last bit: PoCL and lavapipe divide exactly."""
    on_gpu = where in ("opencl", "vulkan")
    for number in range(1 if on_gpu else 3):
        rng = np.random.default_rng([seed, number, 110])
        shape = (int(rng.integers(1, 3)), 3, int(rng.integers(9, 24)), int(rng.integers(9, 24)))
        chain = Chain(rng, shape)
        chain.constants |= {"least": np.float32(0), "most": np.float32(2)}
        channels, size = int(rng.integers(2, 40)), [*shape[2:]]
        at = chain.pair(chain.conv(chain.pair("x"), 3, channels, kernel_shape=[3, 3], pads=[1, 1, 1, 1]))
        for _ in range(3):
            at, channels = chain.block(at, channels, size)
        at, channels = chain.fire(at, channels)
        out = chain.conv(at, channels, 5)
        x = rng.standard_normal(shape).astype(np.float32)
        found = {}
        whole = {"handed on": [out]} if on_gpu else {"handed on": [out], "each pair": [out, *chain.pairs]}
        for which, outputs in whole.items():
            path = save_model(tmp_path / "m.onnx", chain.nodes, {"x": shape}, outputs, chain.constants)
            found[which], operations = in_8_bits(agent, load_onnx(path), x, where)
            own = {"int8_product", "int8_depthwise"} if on_gpu else {"conv2d_int8", "depthwise_int8"}
            assert own <= {*operations}
            assert ("map" in operations) == (which == "each pair")
            theirs = run_onnxruntime(path, {"x": x})[out]
            if on_gpu:
                found["each pair"], _ = in_8_bits(agent, load_onnx(path), x)
        np.testing.assert_array_equal(found["handed on"], found["each pair"])
        # a sum that fp32 rounds past a half moves what follows by steps: the most of it is the same
        assert np.linalg.norm(found["handed on"] - theirs) <= 0.05 * np.linalg.norm(theirs)


@pytest.mark.parametrize("api", ["cpu", "opencl", "vulkan"])
def test_functions_of_rounded_results_are_not_rounded_so(agent: Agent, tmp_path: Path, seed: int, api: Backend) -> None:
    """A function behind a layer's rounding is of what was rounded, in plans of floats too."""
    rng, shape = np.random.default_rng(seed), (2, 9, 7, 6)
    chain = Chain(rng, shape)
    rounded = chain.pair(chain.conv(chain.pair("x"), 9, 12))
    ends = [chain.then("Tanh", [rounded]), chain.then("Mul", [rounded, chain.then("Sigmoid", [rounded])])]
    erf = chain.then("Erf", [chain.then("Mul", [rounded, "root"])])
    ends.append(chain.then("Mul", [chain.then("Mul", [rounded, "half"]), chain.then("Add", [erf, "one"])]))
    chain.constants |= {"root": np.float32(0.5**0.5), "half": np.float32(0.5), "one": np.float32(1)}
    path = save_model(tmp_path / "m.onnx", chain.nodes, {"x": shape}, [out := ends[rng.integers(3)]], chain.constants)
    x = rng.standard_normal(shape).astype(np.float32)
    ended = agent.run(compile_graph(load_onnx(path), Options(api), Limits()), {"x": x}, "--samples", 1)
    theirs = run_onnxruntime(path, {"x": x})[out]
    assert np.mean(np.abs(ended.output(0).reshape(theirs.shape) - theirs) > 1e-5) < 0.01  # a sum near a half of a step
