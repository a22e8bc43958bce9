"""The CPU backend's algorithms of convolution, in every instruction set, equal the reference in double precision."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kernels.compile import compile_graph
from kernels.ir.graph import Array, Graph
from kernels.lower.activation import AT_END
from kernels.lower.cpu.algorithms import ALGORITHMS
from kernels.options import Limits, Options
from kernels.plan.model import Dispatch
from kernels.reference import evaluate
from tests.contract.agent.driver import Agent
from tests.unit.kernels.back.graphs import Builder, inputs_of, relative_error
from tests.unit.kernels.back.norms import rms_norm

CASES = 12
BOUND = {"winograd": 1e-4}
"""Relative error in norm; 1e-5 where none is given."""
ACTIVATIONS = [(), ("relu",), ("clip", -0.25, 0.5), ("sigmoid",), ("leaky_relu", 0.2), ("hard_swish",)]


def wide(values: dict[str, Array]) -> dict[str, Array]:
    return {name: array.astype(np.float64) for name, array in values.items()}


def run(agent: Agent, graph: Graph, algorithm: str, threads: int, isa: str, least: int = 1) -> dict[str, float]:
    """Errors of the graph's outputs; `least` convolutions at least must be of the algorithm."""
    inputs = inputs_of(graph)
    bundle = compile_graph(graph, Options("cpu", algorithm=algorithm), Limits())
    chosen = [choice for option, choice in bundle.plan.options.items() if option.startswith("algorithm:")]
    assert algorithm == "auto" or chosen.count(algorithm) >= least
    ended = agent.run(bundle, inputs, "--warmup", 1, "--samples", 1, "--threads", threads, POCKETFARM_CPU_ISA=isa)
    if ended.code and "this processor has" in ended.error.message:
        pytest.skip(ended.error.message)
    assert ended.code == 0, ended.events[-1]
    constants = graph.constants
    graph.constants = wide(constants)
    wanted = evaluate(graph, wide(inputs))
    graph.constants = constants
    return {
        port.name: relative_error(ended.output(i).reshape(port.shape), wanted[port.name])
        for i, port in enumerate(bundle.plan.outputs)
    }


def random_convolution(build: Builder, number: int, algorithm: str) -> str:
    """One that the algorithm fits, between random sizes; some with a residual, of one image or two."""
    draw = build.rng
    c, k = int(draw.integers(16, 70)), int(draw.integers(1, 70))
    groups = 1
    kh, kw = draw.integers(1, 6, 2).tolist()
    strides, dilations = draw.integers(1, 4, 2).tolist(), draw.integers(1, 3, 2).tolist()
    if algorithm == "winograd":
        kh, kw, strides, dilations = 3, 3, [1, 1], [1, 1]
    elif algorithm == "depthwise":
        width = int(draw.choice([1, 1, 2, 4, 8]))  # channels of a group
        groups = c // width
        c = groups * width
        k = c * int(draw.choice([1, 2, 4, 8, 16])) if width == 1 and draw.random() < 0.5 else c
        dilations[1] = dilations[1] if width == 1 else 1
    elif draw.random() < 0.3:
        groups = 2
        c, k = 32 * int(draw.integers(1, 3)), 32 * int(draw.integers(1, 3))
    elif draw.random() < 0.3:
        groups = 8  # joined to whole blocks
        c, k = (groups * int(each) for each in draw.choice([2, 4, 6, 8, 12], 2))
    elif draw.random() < 0.3:
        c = int(draw.integers(1, 16))  # gathered from the row-major input
    pads = (*draw.integers(0, kh + 1, 1).tolist(), *draw.integers(0, kw + 1, 1).tolist(), 1, 2)
    h, w = (int(draw.integers(2 * kh, 32)), int(draw.integers(2 * kw, 32)))
    if algorithm == "implicit_gemm" and draw.random() < 0.3:  # some rows of the window meet nothing but pads
        dilations = [int(gap) for gap in draw.integers(3, 20, 2)]
        pads = (dilations[0] * (kh - 1), dilations[1] * (kw - 1), dilations[0] * (kh - 1), 2 * dilations[1])
    elif algorithm == "implicit_gemm" and draw.random() < 0.4:  # pixels are read where they lie
        kh, kw, strides, dilations, pads = 1, 1, [1, 1], [1, 1], (0, 0, 0, 0)
    x = build.input(int(draw.integers(1, 3)), c, h, w, name=f"x{number}")
    activation = ACTIVATIONS[draw.integers(0, len(ACTIVATIONS))]
    window = ((kh, kw), tuple(strides), pads, tuple(dilations), groups)
    bias, residual = bool(draw.random() < 0.7), ""
    if draw.random() < 0.4:
        residual = build.conv(x, k, *window)
    return build.conv(x, k, *window, bias=bias, residual=residual, activation=activation)


@pytest.mark.parametrize("isa", ["generic", "avx2", "avx512f"])
@pytest.mark.parametrize(("algorithm", "threads"), [("implicit_gemm", 2), ("winograd", 3), ("depthwise", 1)])
def test_algorithm_equals_the_reference(agent: Agent, algorithm: str, threads: int, isa: str) -> None:
    build = Builder()
    graph = build.outputs(*(random_convolution(build, number, algorithm) for number in range(CASES)))
    errors = run(agent, graph, algorithm, threads, isa, CASES)
    bound = BOUND.get(algorithm, 1e-5)
    assert {name: error for name, error in errors.items() if not error <= bound} == {}
    assert len(errors) == CASES


@pytest.mark.parametrize("isa", ["generic", "avx2", "avx512f"])
def test_first_layers_read_rows_where_they_lie(agent: Agent, isa: str) -> None:
    """Few channels, every stride, with and without padding: in place, or gathered at the edges."""
    build, outputs = Builder(), []
    for number, (window, stride, pad) in enumerate(((3, 2, 0), (7, 2, 3), (11, 4, 2), (5, 1, 2), (3, 3, 1), (3, 1, 0))):
        h, w = build.rng.integers(20, 60, 2).tolist()
        x = build.input(1, int(build.rng.integers(1, 5)), h, w, name=f"x{number}")
        outputs.append(build.conv(x, 40, (window, window), (stride, stride), (pad,) * 4, activation=("relu",)))
    errors = run(agent, build.outputs(*outputs), "implicit_gemm", 2, isa, 6)
    assert {name: error for name, error in errors.items() if not error <= 1e-5} == {}
    assert len(errors) == 6


@pytest.mark.parametrize("isa", ["generic", "avx2", "avx512f"])
def test_dense_layers_normalisation_and_boxes_across_channels(agent: Agent, isa: str) -> None:
    """Some of the dense layers normalise their rows: there is no step for it."""
    build, outputs = Builder(), []
    normed = int(build.rng.integers(2))
    for number, rows in enumerate((1, 2, 17, 30)):
        c, m = build.rng.integers(1, 300, 2).tolist()
        x = build.input(rows, c, name=f"x{number}")
        if number % 2 == normed:
            x = rms_norm(build, x, (rows, c), shifted=False)
        operands = [x, build.constant(c, m, scale=c**-0.5), build.constant(m)]
        activation = ACTIVATIONS[build.rng.integers(0, len(ACTIVATIONS))] or None
        outputs.append(build.node("dense", operands[: 2 + number % 2], (rows, m), activation=activation))
    deep = [build.input(1030, 4100, name="deep"), build.constant(4100, 20, scale=4100**-0.5), build.constant(20)]
    outputs.append(build.node("dense", deep, (1030, 20), activation=("relu",)))  # in parts of its inputs
    for number, (size, beta) in enumerate(((5, 0.75), (3, 0.5), (4, 0.75), (70, 1.25))):
        shape = (2, int(build.rng.integers(17, 60)), 7, 9)
        x = build.conv(build.input(*shape, name=f"image{number}"), shape[1], (1, 1))
        outputs.append(build.node("lrn", [x], shape, size=size, alpha=0.5, beta=beta, bias=1.5))
    for number, kind in enumerate(("mean", "max")):
        pictures, valid = build.constant(30), build.constant(1)
        build.graph.constants |= {pictures: np.arange(30, dtype=np.float32) % 2, valid: np.full(1, 28, np.float32)}
        operands = [build.input(2, 37, 9, 11, name=f"picture{number}"), build.input(30, 4, name=f"boxes{number}")]
        a = {"size": (5, 4), "points": 2, "scale": 4.0, "half": bool(number), "kind": kind}
        outputs.append(build.node("roi_align", [*operands, pictures, valid], (30, 37, 5, 4), **a))
    graph = build.outputs(*outputs)
    plan = compile_graph(graph, Options("cpu"), Limits()).plan
    assert "row_norm" not in {program.kernel for program in plan.programs}
    errors = run(agent, graph, "auto", 2, isa)
    assert {name: error for name, error in errors.items() if not error <= 1e-5} == {}
    assert len(errors) == 11


@pytest.mark.parametrize("algorithm", ["auto", *ALGORITHMS])
def test_a_network_of_every_kind_of_layer(agent: Agent, algorithm: str) -> None:
    """Concat in blocks and out of them, pooling, sums, and a reader of each layout."""
    build = Builder()
    x = build.conv(build.input(2, 3, 29, 31), 24, (3, 3), (2, 2), activation=("relu",))
    shape = build.graph.shapes[x]
    x = build.node("max_pool", [x], (2, 24, shape[2], shape[3]), kernel=(3, 3), strides=(1, 1), pads=(1, 1, 1, 1))
    aligned = [build.conv(x, k, (size, size), (1, 1), (size // 2,) * 4) for k, size in ((16, 1), (32, 3), (5, 5))]
    one = build.node("concat", aligned, (2, 53, *shape[2:]), axis=1)
    odd = [build.conv(one, k, (1, 1), activation=("relu",)) for k in (7, 9)]
    two = build.node("concat", odd, (2, 16, *shape[2:]), axis=1)
    wide_one = build.conv(two, 53, (3, 3), (1, 1), (1, 1, 1, 1))
    total = build.node("add", [one, wide_one], (2, 53, *shape[2:]), activation=("relu",))
    own = build.conv(total, 53, (3, 3), (2, 2), (1, 1, 1, 1), groups=53)
    h, w = build.graph.shapes[own][2:]
    pooled = build.node(
        "average_pool", [own], (2, 53, h, w), kernel=(3, 3), pads=(1, 1, 1, 1), strides=(1, 1), count_include_pad=0
    )
    product = build.node("mul", [own, pooled], (2, 53, h, w))
    mean = build.node("global_average_pool", [product], (2, 53, 1, 1))
    flat = build.node("reshape", [mean], (2, 53), shape=(2, 53))
    rows = build.node("reshape", [product], (2, 53 * h * w), shape=(2, 53 * h * w))
    outputs = [build.node("dense", [value, build.constant(n, 10, scale=n**-0.5)], (2, 10))
               for value, n in ((flat, 53), (rows, 53 * h * w))]  # fmt: skip
    errors = run(agent, build.outputs(*outputs, total, two), algorithm, 2, "")
    assert {name: error for name, error in errors.items() if not error <= 1e-4} == {}
    assert len(errors) == 4


@pytest.mark.parametrize("isa", ["generic", "avx2", "avx512f"])
def test_layers_end_in_functions(agent: Agent, isa: str) -> None:
    """Layers of every algorithm do, also with a reshape in between, and not where the layer's own result is read."""
    build, outputs = Builder(), []
    for number, (_, expression) in enumerate(AT_END.values()):
        x = build.input(2, 24, 12, 13, name=f"x{number}")
        for kernel, groups in (((1, 1), 1), ((3, 3), 1), ((3, 3), 24)):
            pads = (kernel[0] // 2,) * 4
            layer = build.conv(x, 24, kernel, (1, 1), pads, groups=groups)
            outputs.append(build.node("map", [layer], (2, 24, 12, 13), expression=expression))
        rows = build.input(6, 40, name=f"rows{number}")
        dense = build.node("dense", [rows, build.constant(40, 21, scale=0.2)], (6, 21))
        shaped = build.node("reshape", [dense], (2, 3, 21), shape=(2, 3, 21))
        outputs.append(build.node("map", [shaped], (2, 3, 21), expression=expression))
    kept = build.conv("x0", 5, (1, 1))
    outputs += [kept, build.node("map", [kept], (2, 5, 12, 13), expression=("tanh", "a"))]
    graph = build.outputs(*outputs)
    plan = compile_graph(graph, Options("cpu"), Limits()).plan
    assert [step.program for step in plan.steps if isinstance(step, Dispatch)].count("map") == 1
    errors = run(agent, graph, "auto", 2, isa)
    assert {name: error for name, error in errors.items() if not error <= 2e-5} == {}


def test_parts_that_lie_together_are_not_copied(agent: Agent) -> None:
    build = Builder()
    x = build.input(6, 4, 5)
    first, second = (build.node("slice", [x], (2, 4, 5), axis=0, start=at, stop=at + 2) for at in (0, 3))
    inner = build.node("slice", [second], (1, 4, 5), axis=0, start=1, stop=2)
    row = build.node("reshape", [inner], (1, 20), shape=(1, 20))
    part = build.node("slice", [row], (1, 7), axis=1, start=9, stop=16)
    powers = [build.node("map", [value], (2, 4, 5), expression=("mul", "a", "a")) for value in (first, second)]
    turned = build.node("reshape", [powers[1]], (2, 4, 5), shape=(2, 4, 5))
    whole = build.node("concat", [powers[0], x, turned], (10, 4, 5), axis=0)
    again = build.node("concat", [powers[0], whole], (12, 4, 5), axis=0)
    total = build.node("map", [again], (12, 4, 5), expression=("add", "a", 1.0))
    ends = [build.node("sigmoid", [part], (1, 7)), build.node("dense", [part, build.constant(7, 3)], (1, 3))]
    graph = build.outputs(total, *ends, whole, part, powers[1])
    plan = compile_graph(graph, Options("cpu"), Limits()).plan
    programs = [step.program for step in plan.steps if isinstance(step, Dispatch)]
    assert programs.count("take") == 2  # the graph's input, and what lies in another concat
    errors = run(agent, graph, "auto", 2, "")
    assert {name: error for name, error in errors.items() if not error <= 1e-6} == {}


def test_nan_and_infinity_pass(agent: Agent) -> None:
    build = Builder()
    x = build.conv(build.input(1, 20, 12, 12), 20, (1, 1), activation=("relu",))
    graph = build.outputs(x, build.node("max_pool", [x], (1, 20, 4, 4), kernel=(3, 3), strides=(3, 3), pads=(0,) * 4))
    inputs = inputs_of(graph)
    inputs["x"][0, 3, 5, 7] = np.nan
    inputs["x"][0, 4, 0, 0] = np.inf
    ended = agent.run(compile_graph(graph, Options("cpu"), Limits()), inputs)
    wanted = evaluate(graph, inputs)
    for i, name in enumerate(graph.outputs):
        got = ended.output(i).reshape(graph.shapes[name])
        np.testing.assert_array_equal(np.isnan(got), np.isnan(wanted[name]))
        np.testing.assert_array_equal(np.isinf(got), np.isinf(wanted[name]))
        assert np.isnan(got).any()


def test_an_instruction_set_that_is_not_there(agent: Agent, tmp_path: Path) -> None:
    build = Builder()
    graph = build.outputs(build.conv(build.input(1, 3, 5, 5), 4, (3, 3)))
    ended = agent.run(compile_graph(graph, Options("cpu"), Limits()), inputs_of(graph), POCKETFARM_CPU_ISA="mmx")
    assert ended.error.code == "unsupported"
    assert "mmx" in ended.error.message
    assert "generic" in ended.error.message
