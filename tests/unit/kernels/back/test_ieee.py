"""NaN and infinities pass through fp32 as IEEE 754 and the operations' definitions say."""

from __future__ import annotations

import numpy as np
import pytest

from kernels.catalog.convolution import ALGORITHMS, convolution_of
from kernels.compile import compile_graph
from kernels.ir.graph import Array, Graph
from kernels.options import Limits, Options
from kernels.plan.opencl_interpreter import run_opencl
from kernels.reference import evaluate

from .graphs import Builder, generator, inputs_of, relative_error, side_by_side
from .test_convolution import SHAPES
from .test_operations import CASES

SPREADING = ("groups_unaligned", "depthwise_twice", "depthwise", "depthwise_row")
"""Groups that are no whole stacks are written as one, with zeros: a group's infinity is another's NaN (documented).
`depthwise` itself is not concerned; `dot` writes all groups as one."""


def special(graph: Graph) -> dict[str, Array]:
    """Inputs in which NaN and both infinities stand at a few random places."""
    inputs, rng = inputs_of(graph), generator(2)
    for array in inputs.values():
        count = min(3, array.size)
        places = rng.choice(array.size, count, replace=False)
        array.flat[places] = rng.permutation(np.array([np.nan, np.inf, -np.inf], np.float32))[:count]
    return inputs


def differences(got: dict[str, Array], wanted: dict[str, Array]) -> dict[str, str]:
    """Outputs whose NaN, whose infinities or whose finite values differ."""
    found = {}
    for name, array in wanted.items():
        single = array.astype(np.float32)
        finite = np.isfinite(single)
        for kind, test in (("NaN", np.isnan), ("+inf", np.isposinf), ("-inf", np.isneginf)):
            wrong = int((test(got[name]) != test(single)).sum())
            if wrong:
                found[f"{name} {kind}"] = f"{wrong} of {single.size}"
        if not found and relative_error(got[name][finite], single[finite]) > 1e-5:
            found[name] = "finite values differ"
    return found


def definition(graph: Graph, inputs: dict[str, Array]) -> dict[str, Array]:
    with np.errstate(all="ignore"):
        return evaluate(graph, inputs)


def every_operation() -> Graph:
    graphs = {}
    for name, case in CASES.items():
        build = Builder()
        graphs[name] = build.outputs(case(build))
    return side_by_side(graphs)


def convolutions(algorithm: str) -> Graph:
    """Each followed by a 1x1 convolution, which would spread what is left in unused lanes."""
    graphs = {}
    for name, (size, *rest) in SHAPES.items():
        build = Builder()
        first = build.conv(build.input(*size), *rest, activation=("relu",))
        if (
            ALGORITHMS[algorithm].why_not(
                convolution_of(build.graph, build.graph.nodes[0]), Options("opencl"), Limits()
            )
            is None
        ):
            graphs[name] = build.outputs(build.conv(first, 6, (1, 1)), first)
    in_one = dict.fromkeys(("dot", "dot_uneven"), (*SPREADING, "groups_aligned"))
    spreading = {"depthwise": (), **in_one}.get(algorithm, SPREADING)
    return side_by_side({name: graph for name, graph in graphs.items() if name not in spreading})


def found(graph: Graph, inputs: dict[str, Array], **options: str) -> dict[str, str]:
    bundle = compile_graph(graph, Options("opencl", **options), Limits(cpu_device=True))  # type: ignore[arg-type]
    return differences(run_opencl(bundle, inputs).outputs, definition(graph, inputs))


@pytest.mark.slow
def test_every_operation() -> None:
    graph = every_operation()
    assert found(graph, special(graph)) == {}


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", [name for name in ALGORITHMS if not name.startswith(("winograd", "matrix"))])
def test_every_algorithm(algorithm: str) -> None:
    graph = convolutions(algorithm)
    assert found(graph, special(graph), algorithm=algorithm) == {}


@pytest.mark.parametrize(
    "activation",
    [("relu",), ("clip", -0.5, 1.0), ("leaky_relu", 0.1), ("sigmoid",), ("hard_sigmoid", 0.2, 0.5), ("hard_swish",)],
)
def test_activations_keep_nan(activation: tuple[object, ...]) -> None:
    """`fmax` would give the other operand."""
    build = Builder()
    x = build.input(1, 5, 3, 3)
    graph = build.outputs(build.node("add", [x, x], (1, 5, 3, 3), activation=activation))
    inputs = special(graph)
    wanted = definition(graph, inputs)
    made = activation == ("hard_swish",)  # of minus infinity, by zero
    assert np.isnan(wanted[graph.outputs[0]]).sum() == 1 + made
    assert found(graph, inputs) == {}


def test_the_largest_of_nothing_but_minus_infinity_is_that() -> None:
    build = Builder()
    x = build.input(1, 4, 4, 4)
    graph = build.outputs(build.node("max_pool", [x], (1, 4, 2, 2), kernel=(2, 2), strides=(2, 2), pads=(0, 0, 0, 0)))
    inputs = {x: np.full((1, 4, 4, 4), -np.inf, np.float32)}
    inputs[x][0, 0, 0, 0], inputs[x][0, 1, 1, 1] = 3, np.nan
    assert found(graph, inputs) == {}


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_lanes_beyond_the_last_channel_stay_out_of_it(value: float) -> None:
    """Six and five channels: what the unused lanes hold is multiplied with zero, and must not be infinite."""
    build = Builder()
    x = build.conv(build.input(1, 6, 3, 3), 5, (1, 1), bias=False)
    padded = build.node("pad", [x], (1, 5, 5, 5), pads=(1, 1, 1, 1), mode="constant", value=value)
    graph = build.outputs(build.conv(padded, 3, (1, 1)), x)
    for name in graph.constants:
        graph.constants[name] = np.abs(graph.constants[name])
    inputs = {"x": np.abs(inputs_of(graph)["x"])}
    inputs["x"][0, 2, 1, 1] = np.inf
    assert found(graph, inputs) == {}
    assert np.isinf(definition(graph, inputs)[graph.outputs[0]]).all(axis=(0, 1)).sum() == 17


def test_winograd_spreads_what_is_not_finite_over_its_tile() -> None:
    """Its transforms take infinities from infinities: NaN for the whole tile that sees one, and no further."""
    build = Builder()
    graph = build.outputs(build.conv(build.input(1, 4, 12, 12), 4, (3, 3), (1, 1), (1, 1, 1, 1)))
    inputs = inputs_of(graph)
    inputs["x"][0, 1, 5, 5] = np.inf
    bundle = compile_graph(graph, Options("opencl", algorithm="winograd_4x4"), Limits())
    got, wanted = run_opencl(bundle, inputs).outputs[graph.outputs[0]], definition(graph, inputs)[graph.outputs[0]]
    spread = ~np.isfinite(got)
    assert spread[~np.isfinite(wanted)].all()
    rows, columns = np.nonzero(spread.any(axis=(0, 1)))
    assert (set(rows), set(columns)) == ({4, 5, 6, 7}, {4, 5, 6, 7})
    assert relative_error(got[~spread], wanted[~spread]) <= 1e-4
