"""graph -> passes -> lowering -> memory -> plan -> validation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from kernels.errors import OptionError
from kernels.ir.check import check_graph
from kernels.ir.decoder import DecoderStep
from kernels.ir.graph import Graph
from kernels.ir.placement import NOTHING, Placement
from kernels.lower.cpu import ALGORITHMS, lower_cpu
from kernels.lower.draft import Draft
from kernels.memory.choose_layout import place_memory
from kernels.memory.fit_to_budget import budget_of, lower_to_fit
from kernels.memory.layout import Layout
from kernels.options import COMPILE_AXES, CONTRACTED, CPU_PRECISIONS, GPU_PRECISIONS, LAYER_AXES, Limits, Options
from kernels.options.axis import Axis
from kernels.passes import prepare
from kernels.passes.int8 import float_products
from kernels.passes.rewrite import prune
from kernels.passes.rows.decoders import few_steps
from kernels.passes.types import in_parts, in_types, narrow
from kernels.plan.model import Bundle, Generation, Pass
from kernels.plan.validate import validate

from .assemble import assemble
from .divide import Segment, divide
from .join import join
from .windows import with_windows


def compile_graph(graph: Graph, options: Options, limits: Limits, *, spirv_cache: Path | None = None) -> Bundle:
    """Compile a graph for a device. The same input gives the same `plan_hash`.

    `spirv_cache`: folder of compiled shaders; None: the user's cache folder. Raises ModelError (shapes do not fit each
    other), OptionError (an option does not fit: names those that do), UnsupportedNode, PlanError (a limit of the
    device is exceeded), ToolError (no SPIR-V compiler).
    """
    graph = _typed(graph, options, limits)
    if options.on_cpu != NOTHING:
        return _compile_mixed(graph, options, limits, spirv_cache)
    limits = _within(options, limits)
    draft, layout = _lowered(graph, options, limits)
    bundle = assemble(draft, layout, options, limits, spirv_cache=spirv_cache)
    validate(bundle.plan, limits, draft.waves)
    return bundle


def compile_generation(
    steps: Sequence[DecoderStep], options: Options, limits: Limits, *, spirv_cache: Path | None = None
) -> Bundle:
    """Compile the steps of one decoder, the last of one token, as passes of one plan: they share weights and state.

    Raises as `compile_graph` does.
    """
    if options.on_cpu != NOTHING or options.keep_all:
        raise OptionError("a language model is compiled for one backend, without its inner tensors: leave out on_cpu")
    limits = _within(options, limits)
    whole, passes = Draft(steps[0].graph.name), list[Pass]()
    for step in steps:
        graph = few_steps(prune(replace(step.graph, outputs=(step.logits, *step.graph.state.values()))))
        draft, _ = _lowered(_typed(graph, options, limits), options, replace(limits, memory_budget_bytes=0))
        begin, names = len(whole.steps), whole.take_in(draft)
        ports = {port.name: names[port.buffer] for port in (*draft.inputs, *draft.outputs)}
        passes.append(
            Pass(
                begin=begin, end=len(whole.steps), tokens=step.count, ids=ports[step.tokens],
                position=ports[step.position], logits=ports[step.logits],
                rows=step.rows, vocabulary=graph.shapes[step.logits][-1],
            )
        )  # fmt: skip
    whole.generation = Generation(capacity=steps[0].capacity, sequences=steps[0].sequences, passes=tuple(passes))
    bundle = assemble(whole, place_memory(whole, options, limits), options, limits, spirv_cache=spirv_cache)
    validate(bundle.plan, limits, whole.waves)
    return bundle


def _typed(graph: Graph, options: Options, limits: Limits) -> Graph:
    """The graph, after its check, in the types that the backend has."""
    _check_options(options, limits)
    _check_layers(graph, options)
    check_graph(graph)
    graph = _keep_all(graph) if options.keep_all else graph
    if options.backend == "cpu":
        in_8_bits = options.precision == "int8" or limits.int8_layers
        graph = float_products(graph, options) if in_8_bits and not options.keep_all else graph
        return in_types(in_parts(graph, ("conv", "dense")))
    if options.on_cpu == NOTHING or not limits.int64:
        graph = narrow(graph, wide=limits.int64)
    return in_types(in_parts(graph, ("conv", "dense", "matmul")), on_gpu=True)


def _within(options: Options, limits: Limits) -> Limits:
    """The limits that are asked for."""
    return replace(limits, memory_budget_bytes=budget_of(options, limits), max_buffer_bytes=_largest(options, limits))


def _lowered(graph: Graph, options: Options, limits: Limits) -> tuple[Draft, Layout]:
    if options.backend == "cpu":
        draft = lower_cpu(prepare(graph, options, int8_layers=limits.int8_layers), options)
        return draft, place_memory(draft, options, limits)
    return lower_to_fit(graph, options, limits)


def _compile_mixed(graph: Graph, options: Options, limits: Limits, spirv_cache: Path | None) -> Bundle:
    """Each segment by itself, on its own backend; then one plan."""
    if graph.state:
        raise OptionError(f"{graph.name}: it has a state, which lies on one side: leave out on_cpu")
    placement, asked = Placement.of(options.on_cpu), options
    if placement.apart:
        graph, asked = with_windows(graph), replace(options, algorithm="auto")
    segments, on_cpu = divide(graph, placement.on_cpu(graph)), Limits(int8_layers=False)
    bundles = [
        compile_graph(each.graph, _of_segment(each, asked), on_cpu if each.cpu else limits, spirv_cache=spirv_cache)
        for each in segments
    ]
    bundle = join(graph, bundles)
    recorded = {**bundle.plan.options, "on_cpu": options.on_cpu, "algorithm": options.algorithm}
    bundle.plan = bundle.plan.model_copy(update={"options": recorded})
    validate(bundle.plan, limits)
    return bundle


def _of_segment(segment: Segment, options: Options) -> Options:
    """The options of the whole, as far as they mean anything to the segment's backend and its layers."""
    layers = {node.name for node in segment.graph.nodes}
    own = {name: choices for name, choices in options.layers.items() if name in layers}
    if not segment.cpu:
        return replace(options, on_cpu=NOTHING, layers=own)
    known = "auto" if options.algorithm not in ALGORITHMS else options.algorithm
    if Placement.of(options.on_cpu).apart:
        known = "im2col"  # of 1x1 convolutions it is the product alone
    precision = options.precision if options.precision in CPU_PRECISIONS else "fp32"
    precision = "relaxed" if options.precision in CONTRACTED else precision
    return Options(
        "cpu", precision, known, threads=options.threads, fuse=options.fuse, keep_all=options.keep_all, layers=own
    )


def _largest(options: Options, limits: Limits) -> int:
    """Bytes of the largest allocation: what was asked for, but no more than the device allows; 0: not known."""
    return min((size for size in (options.largest_object, limits.max_buffer_bytes) if size), default=0)


def _check_options(options: Options, limits: Limits) -> None:
    if options.precision not in limits.precisions:
        allowed = ", ".join(limits.precisions)
        raise OptionError(f"the device has no {options.precision} for {options.backend}; it has: {allowed}")
    computed = CPU_PRECISIONS if options.backend == "cpu" else GPU_PRECISIONS
    if options.precision not in computed:
        raise OptionError(f"{options.backend} has no {options.precision}; it has: {', '.join(computed)}")
    for name, axis in COMPILE_AXES.items():
        _check_axis(axis, getattr(options, name), options)


def _check_layers(graph: Graph, options: Options) -> None:
    """Every layer that has choices of its own is there, and can have them."""
    names = [node.name for node in graph.nodes]
    for layer, own in options.layers.items():
        if layer not in names:
            near = get_close_matches(layer, names, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise OptionError(f"choices by layer: {graph.name} has no layer {layer}{hint}")
        for name, value in own.items():
            if name not in LAYER_AXES:
                raise OptionError(f"choices by layer: {layer} cannot have a {name} of its own: {', '.join(LAYER_AXES)}")
            _check_axis(COMPILE_AXES[name], value, options.of(layer))


def _check_axis(axis: Axis, value: Any, options: Options) -> None:
    if value == axis.default:
        return
    if options.backend not in axis.backends:
        meant = " and ".join(axis.backends)
        raise OptionError(f"{axis.name} is an option of {meant}, not of {options.backend}; leave it out")
    if axis.words and value not in axis.words:
        raise OptionError(f"there is no {axis.name} {value!r}; there are: {', '.join(axis.words)}")
    if axis.unit and value < 0:
        raise OptionError(f"{axis.name} is a number of bytes from 0 on, not {value}")
    reason = (axis.refuse(value) if axis.refuse else "") or axis.why_conflict(options.backend, vars(options))
    if reason:
        raise OptionError(reason)
    if axis.bounds and not axis.bounds[0] <= value <= axis.bounds[1]:
        raise OptionError(f"{axis.name} is {axis.bounds[0]} to {axis.bounds[1]}, not {value}")


def _keep_all(graph: Graph) -> Graph:
    """Every node's output becomes an output of the graph, in the order of the nodes; the graph's own come first."""
    kept = [name for node in graph.nodes for name in node.outputs if name]
    return replace(graph, outputs=tuple(dict.fromkeys([*graph.outputs, *kept])))
