"""What may be tried for a convolution, and plans that try it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from kernels.assemble import assemble
from kernels.catalog import ALGORITHMS, Convolution, choose, convolution_of, misfit
from kernels.graph import Array, Graph, Node
from kernels.load import random_inputs
from kernels.lower.gpu import lower_gpu
from kernels.options import Choice, Limits, Options
from kernels.passes import prepare
from kernels.plan import Bundle
from kernels.validate import validate

BATCH = 12
"""Candidates of one trial plan, at most."""
_BATCH_BYTES = 256 << 20
"""Memory of one trial plan, at most, where the device has more than twice of it."""
_WINOGRAD_GROWTH = 4
"""Winograd's weights, and its workspace, are so much larger than the plain ones at most."""


@dataclass(frozen=True)
class Trial:
    """A plan of one layer a choice (`0`, `1`, ...), all of the same random input; its output is the last layer's."""

    graph: Graph
    bundle: Bundle
    inputs: Mapping[str, Array]


def layers(graph: Graph, options: Options) -> dict[str, Convolution]:
    """Layer -> convolution, as they are after the network's passes."""
    whole = prepare(graph, options)
    return {node.name: convolution_of(whole, node) for node in whole.nodes if node.op == "conv"}


def distinct(graph: Graph, options: Options) -> dict[str, Convolution]:
    """The network's convolutions by key."""
    return {conv.key: conv for conv in layers(graph, options).values()}


def default_choice(conv: Convolution, options: Options, limits: Limits) -> Choice:
    """What the compiler takes where nothing was tuned; an empty tile is the algorithm's own."""
    return choose(_untuned(options), limits, "", conv)


def candidates(conv: Convolution, options: Options, limits: Limits) -> list[Choice]:
    """The compiler's own choice, then every tile worth trying of every algorithm that fits, the algorithms in turn."""
    fitting = [entry for name, entry in ALGORITHMS.items() if misfit(name, conv, options.precision) is None]
    columns = [[Choice(entry.name, tile) for tile in entry.tiles(conv, options, limits)] for entry in fitting]
    in_turn = [choice for row in zip_longest(*columns) for choice in row if choice is not None]
    return list(dict.fromkeys([default_choice(conv, options, limits), *in_turn]))


def applicable(graph: Graph, options: Options, limits: Limits, known: Mapping[str, Choice]) -> dict[str, Choice]:
    """Of what is known the part that this network can use, and that this compiler would try on such a device itself."""
    if not known or options.backend == "cpu" or options.algorithm != "auto" or options.granularity:
        return {}
    own = {key: conv for key, conv in distinct(graph, options).items() if key in known}
    return {key: known[key] for key, conv in own.items() if known[key] in candidates(conv, options, limits)}


def batches(conv: Convolution, choices: Sequence[Choice], limits: Limits) -> Iterator[list[Choice]]:
    """Parts that fit into the device's memory together, as far as can be told before they are compiled."""
    budget = min(_BATCH_BYTES, limits.memory_budget_bytes // 2 or _BATCH_BYTES)
    part: list[Choice] = []
    room = 0
    for choice in choices:
        needed = footprint_bytes(conv, choice)
        if part and (len(part) == BATCH or needed > room):
            yield part
            part = []
        room = (room if part else budget) - needed
        part.append(choice)
    if part:
        yield part


def footprint_bytes(conv: Convolution, choice: Choice) -> int:
    """About what one candidate adds to a trial plan: its weights, result and workspace, in fp32."""
    kh, kw = conv.kernel
    weight = conv.k * conv.c // conv.groups * kh * kw
    result = conv.n * conv.k * conv.oh * conv.ow
    if choice.algorithm.startswith("winograd"):
        return 4 * _WINOGRAD_GROWTH * (weight + result)
    workspace = conv.n * conv.c * kh * kw * conv.oh * conv.ow if choice.algorithm == "im2col" else 0
    return 4 * (weight + result + workspace)


def trial(
    conv: Convolution, choices: Sequence[Choice], options: Options, limits: Limits, *, spirv_cache: Path | None = None
) -> Trial:
    """A plan that runs each choice once. Raises CompileError."""
    graph = _graph(conv, [str(index) for index in range(len(choices))])
    tuned = replace(_untuned(options), tuned={str(index): choice for index, choice in enumerate(choices)})
    bundle = assemble(lower_gpu(graph, tuned, limits), tuned, limits, spirv_cache=spirv_cache)
    validate(bundle.plan, limits)
    return Trial(graph, bundle, random_inputs(graph, 1))


def _untuned(options: Options) -> Options:
    return replace(options, tuned={}, algorithm="auto", granularity=0)


def _graph(conv: Convolution, names: list[str]) -> Graph:
    """The convolution once a name, with random weights."""
    rng = np.random.default_rng(1)
    window = (conv.k, conv.c // conv.groups, *conv.kernel)
    fan_in = conv.c // conv.groups * conv.kernel[0] * conv.kernel[1]
    weight = (rng.standard_normal(window) * fan_in**-0.5).astype(np.float32)
    attributes: dict[str, Any] = {
        "strides": conv.strides, "pads": conv.pads, "dilations": conv.dilations, "groups": conv.groups,
    }  # fmt: skip
    if conv.mirrored:
        attributes["pad_mode"] = "reflect"
    shapes: dict[str, tuple[int, ...]] = {"x": (conv.n, conv.c, conv.h, conv.w), "weight": window, "bias": (conv.k,)}
    return Graph(
        name="trial",
        inputs=("x",),
        outputs=(f"{names[-1]}:0",),
        nodes=[Node(name, "conv", ("x", "weight", "bias"), (f"{name}:0",), attributes) for name in names],
        constants={"weight": weight, "bias": rng.standard_normal(conv.k).astype(np.float32)},
        shapes={**shapes, **{f"{name}:0": (conv.n, conv.k, conv.oh, conv.ow) for name in names}},
    )
