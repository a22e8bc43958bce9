"""The choices tried for convolutions on the CPU backend, and the layer whose time a conversion between layouts is."""

from __future__ import annotations

import pytest

from kernels.catalog.convolution import Convolution
from kernels.compile import compile_graph
from kernels.frontend.load import load_workload
from kernels.ir.graph import Graph
from kernels.lower.cpu.algorithms import ALGORITHMS, CPU_CONVOLUTIONS
from kernels.options import Choice, Limits, Options
from kernels.plan.model import Dispatch
from kernels.reference import evaluate
from kernels.tuning import (
    Database,
    Exhaustive,
    Ran,
    Trial,
    applicable,
    candidates,
    default_choice,
    distinct,
    steps,
    trial,
    tune,
)
from kernels.tuning.candidates import batches
from kernels.tuning.layers import Layer, layer_of

from .graphs import Builder

CPU = Options("cpu")
SHAPES: dict[str, tuple[Layer, list[str]]] = {
    "3x3": (
        Layer(CPU_CONVOLUTIONS, Convolution(1, 64, 15, 14, 48, 15, 14, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 1)),
        ["winograd", "implicit_gemm", "direct", "im2col"],
    ),
    "strided": (
        Layer(CPU_CONVOLUTIONS, Convolution(2, 64, 31, 31, 20, 16, 16, (3, 3), (2, 2), (1, 1, 1, 1), (1, 1), 1)),
        ["implicit_gemm", "direct", "im2col"],
    ),
    "first": (
        Layer(CPU_CONVOLUTIONS, Convolution(1, 3, 31, 31, 20, 16, 16, (3, 3), (2, 2), (1, 1, 1, 1), (1, 1), 1)),
        ["implicit_gemm", "direct", "im2col", "sequential"],
    ),
    "depthwise": (
        Layer(CPU_CONVOLUTIONS, Convolution(1, 24, 14, 14, 24, 14, 14, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 24)),
        ["depthwise", "direct", "im2col", "sequential"],
    ),
    "grouped": (
        Layer(CPU_CONVOLUTIONS, Convolution(1, 24, 13, 13, 48, 13, 13, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 3)),
        ["direct", "im2col"],
    ),
    "one_result": (
        Layer(CPU_CONVOLUTIONS, Convolution(1, 20, 9, 9, 1, 9, 9, (1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 1)),
        ["implicit_gemm", "direct", "im2col", "sequential"],
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_what_fits_is_tried_and_trials_are_of_the_layer(shape: str) -> None:
    conv, names = SHAPES[shape]
    tried = candidates(conv, CPU, Limits())
    assert tried[0] == default_choice(conv, CPU, Limits())
    assert sorted(choice.words for choice in tried) == sorted(names)
    plan = trial(conv, tried, CPU, Limits())
    for index, choice in enumerate(tried):
        assert plan.bundle.plan.options[f"algorithm:{index}"] == choice.words
        node = next(node for node in plan.graph.nodes if node.name == str(index))
        assert layer_of(plan.graph, node, CPU) == conv


def test_a_row_major_candidate_pays_for_the_conversions() -> None:
    conv, _ = SHAPES["3x3"]
    tried = candidates(conv, CPU, Limits())
    plan = trial(conv, tried, CPU, Limits())
    layers = [step.layer for step in plan.bundle.plan.steps if isinstance(step, Dispatch)]
    for index, choice in enumerate(tried):
        own = [layer for layer in layers if layer in plan.steps[str(index)]]
        assert len(own) == (1 if ALGORITHMS[choice.algorithm].in_blocks else 3), choice


def test_images_come_in_rows() -> None:
    conv, _ = SHAPES["first"]
    tried = candidates(conv, CPU, Limits())
    plan = trial(conv, tried, CPU, Limits())
    layers = [step.layer for step in plan.bundle.plan.steps if isinstance(step, Dispatch)]
    assert not [
        layer for layer in layers if "x:" in layer
    ]  # nobody converts the input; implicit_gemm has its pads written around it
    counts = [sum(layer in plan.steps[str(index)] for layer in layers) for index in range(len(tried))]
    assert dict(zip((choice.words for choice in tried), counts, strict=True)) == {
        "implicit_gemm": 2, "direct": 2, "im2col": 2, "sequential": 2
    }  # fmt: skip


def test_computed_weights_leave_no_choice() -> None:
    build = Builder()
    x, weight = build.input(1, 16, 5, 5), build.input(16, 16, 1, 1, name="weight")
    window = {"strides": (1, 1), "pads": (0, 0, 0, 0), "dilations": (1, 1), "groups": 1}
    graph = build.outputs(build.node("conv", [x, weight], (1, 16, 5, 5), **window))
    assert distinct(graph, CPU) == {}
    assert "direct" in compile_graph(graph, CPU, Limits()).plan.options.values()


def test_batches_count_both_layouts() -> None:
    conv, _ = SHAPES["3x3"]
    tried = candidates(conv, CPU, Limits())
    assert list(batches(conv, tried, Limits())) == [tried]
    assert list(batches(conv, tried, Limits(memory_budget_bytes=1 << 10))) == [[each] for each in tried]


def test_what_is_known_shapes_the_plan_where_it_fits() -> None:
    graph = load_workload(network="lenet", onnx=None, seed=1)
    first, second = distinct(graph, CPU)
    known = {first: Choice("im2col"), second: Choice("depthwise")}
    tuned = applicable(graph, CPU, Limits(), known)
    assert tuned == {first: Choice("im2col")}
    assert applicable(graph, Options("cpu", algorithm="direct"), Limits(), known) == {}
    chosen = compile_graph(graph, Options("cpu", tuned=tuned), Limits()).plan.options
    assert [words for name, words in chosen.items() if name.startswith("algorithm:")] == ["im2col", "implicit_gemm"]
    # a name asked for counts for more, and what does not fit is not used
    asked = Options("cpu", algorithm="direct", tuned=known)
    assert set(_chosen(compile_graph(graph, asked, Limits()).plan.options)) == {"direct"}
    why_not = Options("cpu", tuned={second: Choice("depthwise")})
    assert set(_chosen(compile_graph(graph, why_not, Limits()).plan.options)) == {"implicit_gemm"}


def _chosen(options: dict[str, int | str | bool]) -> list[str]:
    return [str(words) for name, words in options.items() if name.startswith("algorithm:")]


def test_conversions_inside_the_network_belong_to_the_row_major_layer() -> None:
    build = Builder()
    for _ in range(3):
        build.conv(build.graph.nodes[-1].output if build.graph.nodes else build.input(1, 16, 9, 9), 16, (1, 1))
    graph = build.outputs(build.graph.nodes[-1].output)
    middle = graph.nodes[1].name
    plan = compile_graph(graph, Options("cpu", tuned={middle: Choice("direct")}), Limits()).plan
    keys = steps(graph, CPU)
    inner = [step.layer for step in plan.steps if isinstance(step, Dispatch) and "nc16" in step.layer]
    assert f"{graph.nodes[0].output}:from_nc16" in inner and f"{graph.nodes[1].output}:to_nc16" in inner
    for layer in (f"{graph.nodes[0].output}:from_nc16", f"{graph.nodes[1].output}:to_nc16"):
        assert keys[layer] == keys[middle]


@pytest.mark.parametrize("rows", ["narrow", "wide"])
def test_a_joined_result_has_the_layout_of_most_of_its_parts(rows: str) -> None:
    """A part that is computed in rows is converted then, not the others and the whole."""
    graph = joined()
    narrow, wide, reader = (node for node in graph.nodes if node.op == "conv")
    tuned = {narrow.name if rows == "narrow" else wide.name: Choice("direct")}
    plan = compile_graph(graph, Options("cpu", tuned=tuned), Limits()).plan
    found = {step.layer for step in plan.steps if isinstance(step, Dispatch) and "nc16" in step.layer}
    inside = {layer for layer in found if not layer.startswith(reader.output)}
    if rows == "narrow":
        assert inside == {f"{narrow.output}:to_nc16"}
    else:
        assert inside == {f"{narrow.output}:from_nc16", f"{reader.inputs[0]}:to_nc16"}


def joined() -> Graph:
    """Two convolutions of an image, side by side, and one that reads them."""
    build = Builder()
    x = build.input(1, 3, 9, 10)
    parts = [build.conv(x, k, (3, 3), (1, 1), (1, 1, 1, 1)) for k in (16, 32)]
    whole = build.node("concat", parts, (1, 48, 9, 10), axis=1)
    return build.outputs(build.conv(whole, 16, (1, 1)))


def test_the_search_adds_conversions_up() -> None:
    """`direct` is the fastest alone; whether it is with what it has converted, depends on that."""
    build = Builder()
    graph = build.outputs(build.conv(build.input(1, 16, 24, 24), 16, (1, 1)))
    alone = {"implicit_gemm": 1.0, "direct": 0.5, "im2col": 0.7, "sequential": 5.0}

    def search(conversion_ms: float) -> tuple[str, float]:
        def run(plan: Trial, passes: int) -> Ran:
            named = {step.layer for step in plan.bundle.plan.steps if isinstance(step, Dispatch)}
            times = dict.fromkeys(named, 9.0)  # of the layers around the candidates
            times |= {layer: conversion_ms for layer in named if "nc16" in layer}
            times |= {layer: alone[str(plan.bundle.plan.options[f"algorithm:{layer}"])] for layer in plan.steps}
            return Ran({layer: [ms] * passes for layer, ms in times.items()}, evaluate(plan.graph, plan.inputs))

        (found,) = tune(graph, CPU, Limits(), run, device="d", database=Database(), strategy=lambda _: Exhaustive(1))
        return found.choice.words, found.ms

    assert search(0.15) == ("direct", pytest.approx(0.8))
    assert search(0.3) == ("implicit_gemm", 1.0)
