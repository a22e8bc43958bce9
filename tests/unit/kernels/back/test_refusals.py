"""A plan that does not fit is refused while it is made, with the figures; nothing falls back."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kernels.compile import compile_graph
from kernels.errors import CompileError, ModelError, OptionError, PlanError
from kernels.ir.graph import Graph, Node
from kernels.options import Choice, Limits, Options

from .graphs import Builder

CASES: dict[str, tuple[dict[str, Any], Limits, type[CompileError], str]] = {
    "an algorithm that fits nowhere": (
        {"algorithm": "winograd"}, Limits(), OptionError,
        r"'winograd' .* fits nowhere in this network \(conv0: it has a stride or dilation\); it can use: auto, ",
    ),
    "an unknown algorithm": (
        {"algorithm": "wino"}, Limits(), OptionError, "'wino' is not known; this network can use: ",
    ),
    "a work-group over the limit": (
        {"tuned": {"conv0": Choice("implicit_gemm", "16x16x8x2x2x1")}}, Limits(max_work_group=128, local_bytes=1 << 20),
        PlanError, r"work-group of 256 work-items exceeds the device's largest work-group of 128 by 128",
    ),
    "a tile over local memory": (
        {"tuned": {"conv0": Choice("implicit_gemm", "16x16x8x2x2x1")}}, Limits(max_work_group=256, local_bytes=8 << 10),
        PlanError, r"16384 bytes of local memory exceeds the device's local memory of 8192 by 8192",
    ),
    "no tile that fits": (
        {"algorithm": "implicit_gemm"}, Limits(max_work_group=4, local_bytes=64), OptionError,
        r"needs \d+ bytes of local memory and a work-group of \d+; the device has 64 and 4",
    ),
    "a network over the memory budget": (
        {}, Limits(memory_budget_bytes=1000), PlanError,
        r"needs at least \d+ bytes of device memory .*, \d+ more than the memory budget of 1000; .*give a larger"
        r" memory_budget, another precision or algorithm \(`direct` has the smallest weights\), ",
    ),
    "the smallest weights over the memory budget": (
        {"algorithm": "direct"}, Limits(memory_budget_bytes=1000), PlanError,
        r"give a larger memory_budget, another precision, a smaller workspace or input$",
    ),
    "a buffer over the largest allocation": (
        {}, Limits(max_buffer_bytes=1000), PlanError,
        r"of \d+ bytes exceeds the device's largest allocation of 1000 by \d+",
    ),
    "a precision that the device lacks": (
        {"precision": "fp16_arithmetic"}, Limits(precisions=("fp32", "relaxed", "fp16")), OptionError,
        "the device has no fp16_arithmetic for opencl; it has: fp32, relaxed, fp16",
    ),
}  # fmt: skip


def strided() -> Graph:
    build = Builder()
    return build.outputs(build.conv(build.input(1, 16, 20, 20), 32, (3, 3), (2, 2), (1, 1, 1, 1)))


@pytest.mark.parametrize("case", CASES)
def test_refused(case: str) -> None:
    options, limits, error, message = CASES[case]
    with pytest.raises(error, match=message):
        compile_graph(strided(), Options("opencl", **options), limits)


@pytest.mark.parametrize("precision", ["fp16", "fp16_arithmetic"])
def test_the_cpu_has_no_half(precision: Any) -> None:
    with pytest.raises(OptionError, match=f"cpu has no {precision}; it has: fp32, relaxed"):
        compile_graph(strided(), Options("cpu", precision), Limits())


def test_a_graph_whose_shapes_do_not_fit() -> None:
    """A plan would read beyond the end of a buffer."""
    spoilt: dict[str, Callable[[Graph], object]] = {
        "bias 'constant1' has shape (8,); expected (K,) with K = 64": lambda g: g.constants.update(
            constant1=np.zeros(8, np.float32)
        ),
        "makes (1, 64, 8, 8); the graph says (1, 64, 9, 9)": lambda g: g.shapes.update({"conv0:0": (1, 64, 9, 9)}),
        "reads 'nowhere', which nothing writes": lambda g: g.nodes.append(Node("r", "relu", ("nowhere",), ("y",))),
        "'r' (add): operand 'x' of shape (1, 64, 1, 1) is no constant": lambda g: (
            g.nodes.append(Node("r", "add", ("conv0:0", "x"), ("y",))),
            g.shapes.update(y=(1, 64, 8, 8), x=(1, 64, 1, 1), constant0=(64, 64, 1, 1)),
            g.nodes[0].attributes.update(pads=(0, 0, 7, 7)),
        ),
    }
    for api in ("cpu", "opencl", "vulkan"):
        for said, spoil in spoilt.items():
            build = Builder()
            graph = build.outputs(build.conv(build.input(1, 64, 8, 8), 64, (1, 1)))
            spoil(graph)
            graph.shapes |= {name: array.shape for name, array in graph.constants.items()}
            with pytest.raises(ModelError, match=re.escape(said)):
                compile_graph(graph, Options(api), Limits())  # type: ignore[arg-type]
