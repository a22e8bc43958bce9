"""What may be tried for a convolution, and plans that try it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from kernels.assemble import assemble
from kernels.catalog import ALGORITHMS, Convolution, convolution_of
from kernels.graph import Graph, Node
from kernels.lower.gpu import lower_gpu
from kernels.options import Choice, Limits, Options
from kernels.passes import optimise
from kernels.plan import Bundle
from kernels.validate import validate


def distinct(graph: Graph, options: Options) -> dict[str, Convolution]:
    """The network's convolutions by key, as they are after its passes."""
    whole = optimise(graph, fuse=options.fuse and not options.keep_all)
    convolutions = (convolution_of(whole, node) for node in whole.nodes if node.op == "conv")
    return {conv.key: conv for conv in convolutions}


def candidates(conv: Convolution, options: Options, limits: Limits) -> list[Choice]:
    """Every algorithm that fits with every tile worth trying; the compiler's own choice comes first."""
    return [
        Choice(name, tile)
        for name, algorithm in ALGORITHMS.items()
        if algorithm.misfit(conv) is None
        for tile in algorithm.tiles(conv, options, limits)
    ]


def trial(
    conv: Convolution, choices: list[Choice], options: Options, limits: Limits, *, spirv_cache: Path | None = None
) -> Bundle:
    """A plan with one layer a choice, named `0`, `1`, ..., all of the same random input. Raises CompileError."""
    rng = np.random.default_rng(1)
    window = (conv.k, conv.c // conv.groups, *conv.kernel)
    fan_in = conv.c // conv.groups * conv.kernel[0] * conv.kernel[1]
    weight = (rng.standard_normal(window) * fan_in**-0.5).astype(np.float32)
    attributes = {
        "strides": conv.strides, "pads": conv.pads, "dilations": conv.dilations, "groups": conv.groups,
    }  # fmt: skip
    names = [str(index) for index in range(len(choices))]
    shapes: dict[str, tuple[int, ...]] = {"x": (conv.n, conv.c, conv.h, conv.w), "weight": window, "bias": (conv.k,)}
    graph = Graph(
        name="trial",
        inputs=("x",),
        outputs=(f"{names[-1]}:0",),
        nodes=[Node(name, "conv", ("x", "weight", "bias"), (f"{name}:0",), attributes) for name in names],
        constants={"weight": weight, "bias": rng.standard_normal(conv.k).astype(np.float32)},
        shapes={**shapes, **{f"{name}:0": (conv.n, conv.k, conv.oh, conv.ow) for name in names}},
    )
    tuned = replace(options, tuned=dict(zip(names, choices, strict=True)), algorithm="auto", granularity=0)
    bundle = assemble(lower_gpu(graph, tuned, limits), tuned, limits, spirv_cache=spirv_cache)
    validate(bundle.plan, limits)
    return bundle
