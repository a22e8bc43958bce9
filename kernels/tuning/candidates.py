"""Choices that may be tried for a layer, and plans that try them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kernels.compile.assemble import assemble
from kernels.frontend.load import random_inputs
from kernels.ir.graph import Array, Graph, Node
from kernels.lower.cpu import lower_cpu
from kernels.lower.cpu.layout import conversions
from kernels.lower.gpu import lower_gpu
from kernels.memory.choose_layout import place_memory
from kernels.options import Choice, Limits, Options
from kernels.passes import prepare
from kernels.passes.split_weights import largest_weight, oversized, split_weights
from kernels.plan.model import Bundle
from kernels.plan.validate import validate

from .layers import Layer, in_turn, layer_of, untuned

BATCH = 12
"""Candidates of one trial plan, at most."""
_ANY = Limits()
_BATCH_BYTES = 256 << 20
"""Memory of one trial plan, at most, where the device has more than twice of it."""


@dataclass(frozen=True)
class Trial:
    """A plan of one layer a choice (`0`, `1`, ...), all of the same random input; its output is the last layer's."""

    graph: Graph
    bundle: Bundle
    inputs: Mapping[str, Array]
    steps: Mapping[str, Sequence[str]]
    """Choice -> names of the steps that are its work."""


def layers(graph: Graph, options: Options, limits: Limits = _ANY) -> dict[str, Layer]:
    """Layer's name -> its sizes, as they are after the network's passes: what the options leave to tuning."""
    return {node.name: layer for node, layer in _open(graph, options, limits)}


def distinct(graph: Graph, options: Options, limits: Limits = _ANY) -> dict[str, Layer]:
    """The network's layers by key."""
    return {layer.key: layer for layer in layers(graph, options, limits).values()}


def steps(graph: Graph, options: Options, limits: Limits = _ANY) -> dict[str, str]:
    """Name of a step of the network's plan -> key of the layer whose work it is."""
    return {step: layer.key for node, layer in _open(graph, options, limits) for step in steps_of(node)}


def steps_of(node: Node) -> tuple[str, ...]:
    """Names of a node's steps in a plan: its own, and on the CPU the conversions that its algorithm calls for."""
    return node.name, *conversions(node)


def _open(graph: Graph, options: Options, limits: Limits) -> Iterator[tuple[Node, Layer]]:
    whole = prepare(graph, options, local_bytes=limits.local_bytes)
    whole = split_weights(whole, oversized(whole, largest_weight(options, limits)))
    for node in whole.nodes:
        layer = layer_of(whole, node, options)
        if layer and layer.family.is_open(options):
            yield node, layer


def default_choice(layer: Layer, options: Options, limits: Limits) -> Choice:
    """Return the compiler's choice where nothing was tuned; an empty tile is the algorithm's own."""
    return layer.family.choose(untuned(options), limits, "", layer.sizes)


def candidates(layer: Layer, options: Options, limits: Limits) -> list[Choice]:
    """The compiler's own choice, then every tile worth trying of every algorithm that fits, the algorithms in turn."""
    columns = layer.family.candidates(layer.sizes, options, limits)
    return list(dict.fromkeys([default_choice(layer, options, limits), *in_turn(columns)]))


def applicable(graph: Graph, options: Options, limits: Limits, known: Mapping[str, Choice]) -> dict[str, Choice]:
    """Return the part of what is known that this network can use, and that this compiler would try on such a device
    itself."""
    if not known:
        return {}
    own = {key: layer for key, layer in distinct(graph, options, limits).items() if key in known}
    return {key: known[key] for key, layer in own.items() if known[key] in candidates(layer, options, limits)}


def batches(layer: Layer, choices: Sequence[Choice], limits: Limits) -> Iterator[list[Choice]]:
    """Parts that fit into the device's memory together, as far as can be told before they are compiled."""
    budget = min(_BATCH_BYTES, limits.memory_budget_bytes // 2 or _BATCH_BYTES)
    part: list[Choice] = []
    room = 0
    for choice in choices:
        needed = layer.family.footprint_bytes(layer.sizes, choice)
        if part and (len(part) == BATCH or needed > room):
            yield part
            part = []
        room = (room if part else budget) - needed
        part.append(choice)
    if part:
        yield part


def trial(
    layer: Layer, choices: Sequence[Choice], options: Options, limits: Limits, *, spirv_cache: Path | None = None
) -> Trial:
    """A plan that runs each choice once. Raises CompileError."""
    graph = layer.family.trial(layer.sizes, [str(index) for index in range(len(choices))])
    known = {str(index): choice for index, choice in enumerate(choices)}
    tuned = replace(untuned(options), tuned=known, in_place=False)  # else the last one alone would overwrite its input
    draft = lower_cpu(graph, tuned) if options.backend == "cpu" else lower_gpu(graph, tuned, limits, at_ports=False)
    bundle = assemble(draft, place_memory(draft, tuned, limits), tuned, limits, spirv_cache=spirv_cache)
    validate(bundle.plan, limits)
    own = {node.name: steps_of(node) for node in graph.nodes if node.name in known}
    return Trial(graph, bundle, random_inputs(graph, 1), own)
