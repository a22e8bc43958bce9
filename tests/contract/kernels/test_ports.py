"""First layers that read the input as the host wrote it, and last layers that write the output as the host reads it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kernels.compile import compile_graph
from kernels.ir.graph import Graph
from kernels.options import Backend, Limits, Options, Precision
from kernels.plan.model import Bundle, Dispatch, Plan
from kernels.reference import evaluate
from tests.contract.agent.driver import Agent
from tests.contract.agent.plans import Array
from tests.unit.kernels.back.graphs import TOLERANCE, Builder, covering, inputs_of, relative_error, side_by_side
from tests.unit.kernels.back.test_ieee import definition, differences, special
from tests.unit.kernels.back.test_operations import CASES

from . import matrices

pytestmark = pytest.mark.long
DESKTOP = Limits(unified_memory=False, compute_units=132, max_work_group=1024, local_bytes=32 << 10)
UNITS = replace(matrices.HELD, unified_memory=False)
GPUS = ("opencl", "vulkan")


def steps(plan: Plan, kernel: str) -> int:
    """Count the dispatches of kernels whose name begins so."""
    names = {program.id: program.kernel for program in plan.programs}
    return sum(isinstance(step, Dispatch) and names[step.program].startswith(kernel) for step in plan.steps)


def run(agent: Agent, bundle: Bundle, inputs: dict[str, Array]) -> dict[str, Array]:
    ended = agent.run(bundle, inputs, "--warmup", 0, "--samples", 1)
    assert ended.code == 0, ended.events[-1]
    return {port.name: ended.output(i).reshape(port.shape) for i, port in enumerate(bundle.plan.outputs)}


# input shape, output channels, window, strides, pads, dilations
FIRST = {
    "one": ((1, 1, 9, 7), 8, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1)),
    "two": ((3, 2, 7, 10), 16, (5, 3), (2, 1), (0, 2, 3, 1), (1, 2)),
    "three": ((2, 3, 13, 11), 18, (7, 7), (2, 2), (3, 3, 3, 3), (1, 1)),
    "four": ((1, 4, 6, 5), 5, (1, 1), (1, 1), (0, 0, 0, 0), (1, 1)),
}


def first_layers() -> Graph:
    """One to four channels; windows beyond the edges, mirrored, dilated; several pictures; a branch, and an output."""
    graphs = {}
    for name, (size, *rest) in FIRST.items():
        build = Builder()
        first = build.conv(build.input(*size), *rest, activation=("relu",))
        graphs[name] = build.outputs(build.conv(first, 6, (1, 1)), first)
    build = Builder()
    mirror = build.node("pad", [build.input(2, 3, 5, 6)], (2, 3, 9, 10), pads=(2,) * 4, mode="reflect", value=0.0)
    graphs["mirrored"] = build.outputs(build.conv(mirror, 8, (5, 5)))
    build = Builder()
    x, other = build.input(1, 3, 6, 5), build.input(1, 8, 6, 5, name="other")
    graphs["branch"] = build.outputs(build.conv(x, 8, (3, 3), (1, 1), (1, 1, 1, 1), residual=other), x)
    return side_by_side(graphs)


def packed_layers() -> Graph:
    """Two readers of one input; more channels than a stack; a layer that adds its own input."""
    graphs = {}
    build = Builder()
    x = build.input(2, 3, 6, 7)
    graphs["twice"] = build.outputs(build.conv(x, 8, (3, 3)), build.conv(x, 4, (1, 1)))
    build = Builder()
    graphs["five"] = build.outputs(build.conv(build.input(1, 5, 6, 7), 8, (3, 3)))
    build = Builder()
    x = build.input(1, 4, 6, 7)
    graphs["itself"] = build.outputs(build.conv(x, 4, (3, 3), (1, 1), (1, 1, 1, 1), residual=x))
    return side_by_side(graphs)


@pytest.mark.parametrize(("api", "precision"), covering("first", GPUS, ["fp32", "fp16", "matrix units"]))
def test_first_layers_read_the_input_itself(
    agent: Agent, api: Backend, precision: Precision, monkeypatch: pytest.MonkeyPatch, shaders: Path
) -> None:
    """Channels that are not there are zero, also beside an infinity; what is added is packed."""
    options, limits = Options(api, precision), DESKTOP
    if precision not in TOLERANCE:
        matrices.hold(monkeypatch)
        precision, limits = "fp16", UNITS
        options = Options(api, precision, algorithm="matrix_units 1x1x1x1x1x1x3")
    graph = first_layers()
    bundle = compile_graph(graph, options, limits, spirv_cache=shaders)
    assert steps(bundle.plan, "pack") == 1
    inputs = inputs_of(graph)
    wanted, got = evaluate(graph, inputs), run(agent, bundle, inputs)
    assert {name: e for name in got if (e := relative_error(got[name], wanted[name])) > TOLERANCE[precision]} == {}
    inputs = special(graph)
    wanted = definition(graph, inputs)
    if precision == "fp32":
        assert differences(run(agent, bundle, inputs), wanted) == {}
    else:
        got = run(agent, bundle, inputs)
        assert [name for name in got if (np.isfinite(got[name]) != np.isfinite(wanted[name])).any()] == []


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_what_several_read_is_packed_once_for_all(precision: Precision) -> None:
    assert steps(compile_graph(packed_layers(), Options("opencl", precision), DESKTOP).plan, "pack") == 3


def test_phones_and_mapped_inputs_keep_their_first_layers() -> None:
    graph, plain = first_layers(), Options("opencl")
    for options, limits in (
        (plain, Limits()),
        (plain, replace(DESKTOP, cpu_device=True)),
        (replace(plain, transfers="map"), DESKTOP),
    ):
        assert steps(compile_graph(graph, options, limits).plan, "pack") == 7


LAST = (
    "dense_row", "dense_row_deep", "dense_no_bias", "matmul", "matmul_whole_vectors", "relu_rank_3", "mul_rank_3",
    "affine_rank_3", "softmax_long_rows", "softmax_rank_3", "map", "reduce", "mean_of_long_rows", "max_of_long_rows",
)  # fmt: skip


def last_layers() -> Graph:
    graphs = {}
    for name in LAST:
        build = Builder()
        graphs[name] = build.outputs(CASES[name](build))
    build = Builder()
    pooled = build.node("global_average_pool", [build.conv(build.input(2, 5, 4, 6), 12, (1, 1))], (2, 12, 1, 1))
    graphs["pooled"] = build.outputs(build.node("reshape", [pooled], (2, 12), shape=(2, 12)))
    build = Builder()
    image = build.conv(build.input(2, 5, 4, 6), 9, (1, 1))
    graphs["flat"] = build.outputs(build.node("reshape", [image], (2, 216), shape=(2, 216)))
    return side_by_side(graphs)


def read_too() -> Graph:
    """Outputs that another layer reads, or that lie in one."""
    build = Builder()
    hidden = build.node("dense", [build.input(1, 9), build.constant(9, 8)], (1, 8))
    beside = build.node("dense", [build.input(1, 7, name="y"), build.constant(7, 6)], (1, 6))
    whole = build.node("concat", [build.node("relu", [hidden], (1, 8)), beside], (1, 14), axis=1)
    return build.outputs(hidden, beside, whole)


@pytest.mark.parametrize(("api", "precision"), covering("last", GPUS, ["fp16", "matrix units"]))
def test_last_layers_in_halves_store_single_precision(
    agent: Agent, api: Backend, precision: Precision, monkeypatch: pytest.MonkeyPatch, shaders: Path
) -> None:
    """They take no step more, and round to halves only where they move or compare such, or rows must be cut to size."""
    options, limits = Options(api, "fp16"), DESKTOP
    if precision not in TOLERANCE:
        matrices.hold(monkeypatch)
        options, limits = Options(api, "fp16", product="matrix_units 1x2x1x2x2x1x4"), UNITS
    graph = side_by_side({"last": last_layers(), "read": read_too()})
    bundle = compile_graph(graph, options, limits, spirv_cache=shaders)
    assert steps(bundle.plan, "widen") == 2, "what lies within a concat is unpacked"
    assert steps(bundle.plan, "unpack_data") == 0
    inputs = inputs_of(graph)
    wanted, got = evaluate(graph, inputs), run(agent, bundle, inputs)
    assert {name: e for name in got if (e := relative_error(got[name], wanted[name])) > TOLERANCE["fp16"]} == {}
    halves = {name.split(".")[1] for name, array in got.items() if (array == array.astype(np.float16)).all()}
    assert halves - {"dense0:0", "dense1:0", "concat3:0"} == {"relu_rank_3", "max_of_long_rows", "matmul", "flat"}
