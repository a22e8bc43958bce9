"""What may be tried for a layer, and plans that try it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kernels.assemble import assemble
from kernels.graph import Array, Graph
from kernels.load import random_inputs
from kernels.lower.gpu import lower_gpu
from kernels.options import Choice, Limits, Options
from kernels.passes import prepare
from kernels.plan import Bundle
from kernels.validate import validate

from .kinds import Layer, in_turn, kind_of, layer_of, untuned

BATCH = 12
"""Candidates of one trial plan, at most."""
_BATCH_BYTES = 256 << 20
"""Memory of one trial plan, at most, where the device has more than twice of it."""


@dataclass(frozen=True)
class Trial:
    """A plan of one layer a choice (`0`, `1`, ...), all of the same random input; its output is the last layer's."""

    graph: Graph
    bundle: Bundle
    inputs: Mapping[str, Array]


def layers(graph: Graph, options: Options) -> dict[str, Layer]:
    """Layer's name -> its sizes, as they are after the network's passes: what the options leave to tuning."""
    whole = prepare(graph, options)
    found = {node.name: layer_of(whole, node) for node in whole.nodes}
    return {name: layer for name, layer in found.items() if layer and kind_of(layer).is_open(options)}


def distinct(graph: Graph, options: Options) -> dict[str, Layer]:
    """The network's layers by key."""
    return {layer.key: layer for layer in layers(graph, options).values()}


def default_choice(layer: Layer, options: Options, limits: Limits) -> Choice:
    """What the compiler takes where nothing was tuned; an empty tile is the algorithm's own."""
    return kind_of(layer).default(layer, untuned(options), limits)


def candidates(layer: Layer, options: Options, limits: Limits) -> list[Choice]:
    """The compiler's own choice, then every tile worth trying of every algorithm that fits, the algorithms in turn."""
    tiles = kind_of(layer).choices(layer, options, limits)
    return list(dict.fromkeys([default_choice(layer, options, limits), *in_turn(tiles)]))


def applicable(graph: Graph, options: Options, limits: Limits, known: Mapping[str, Choice]) -> dict[str, Choice]:
    """Of what is known the part that this network can use, and that this compiler would try on such a device itself."""
    if not known or options.backend == "cpu":
        return {}
    own = {key: layer for key, layer in distinct(graph, options).items() if key in known}
    return {key: known[key] for key, layer in own.items() if known[key] in candidates(layer, options, limits)}


def batches(layer: Layer, choices: Sequence[Choice], limits: Limits) -> Iterator[list[Choice]]:
    """Parts that fit into the device's memory together, as far as can be told before they are compiled."""
    budget = min(_BATCH_BYTES, limits.memory_budget_bytes // 2 or _BATCH_BYTES)
    part: list[Choice] = []
    room = 0
    for choice in choices:
        needed = footprint_bytes(layer, choice)
        if part and (len(part) == BATCH or needed > room):
            yield part
            part = []
        room = (room if part else budget) - needed
        part.append(choice)
    if part:
        yield part


def footprint_bytes(layer: Layer, choice: Choice) -> int:
    """About what one candidate adds to a trial plan, in fp32."""
    return kind_of(layer).footprint_bytes(layer, choice)


def trial(
    layer: Layer, choices: Sequence[Choice], options: Options, limits: Limits, *, spirv_cache: Path | None = None
) -> Trial:
    """A plan that runs each choice once. Raises CompileError."""
    graph = kind_of(layer).graph(layer, [str(index) for index in range(len(choices))])
    known = {str(index): choice for index, choice in enumerate(choices)}
    tuned = replace(untuned(options), tuned=known, in_place=False)  # else the last one alone would overwrite its input
    bundle = assemble(lower_gpu(graph, tuned, limits), tuned, limits, spirv_cache=spirv_cache)
    validate(bundle.plan, limits)
    return Trial(graph, bundle, random_inputs(graph, 1))
