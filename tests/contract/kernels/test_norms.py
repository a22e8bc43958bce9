"""Normalisations that exporters write in single steps: one kernel where there is one, and right in halves."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kernels.compile import compile_graph
from kernels.ir.graph import Graph
from kernels.options import Backend, Limits, Options, Precision
from kernels.passes import prepare
from kernels.plan.model import Dispatch
from kernels.reference import evaluate
from tests.contract.agent.driver import Agent
from tests.unit.kernels.back import rows
from tests.unit.kernels.back.graphs import TOLERANCE, Builder, covering, inputs_of, relative_error, side_by_side
from tests.unit.kernels.back.norms import FORMS, group_norm, norms, rms_norm

from . import matrices
from .test_agreement import check

DESKTOP = Limits(unified_memory=False, compute_units=128, max_work_group=1024, local_bytes=32768)
EVERYWHERE = pytest.mark.parametrize(("api", "precision"), [("cpu", "fp32"), ("opencl", "fp16"), ("vulkan", "fp16")])


@EVERYWHERE
def test_each_is_one_kernel(agent: Agent, api: Backend, precision: Precision, shaders: Path) -> None:
    graph = side_by_side({"short": norms((2, 3, 8), 2), "long": norms((1, 5, 260), 2), "matrix": norms((3, 1028), 1)})
    for limits, kernel in ((Limits(), "row_norm"), (DESKTOP, "row_norm" if api == "cpu" else "row_norm_held")):
        plan = check(agent, graph, Options(api, precision), limits, shaders)
        kernels = [step.program for step in plan.steps if isinstance(step, Dispatch)]
        assert len([name for name in kernels if name.startswith(kernel)]) == 3 * len(FORMS)
        assert not [name for name in kernels if name.startswith(("map", "reduce", "take", "binary"))]


def test_rms_norms_write_rows_as_matrix_units_have_them(
    agent: Agent, monkeypatch: pytest.MonkeyPatch, shaders: Path
) -> None:
    monkeypatch.setattr(rows, "layer_norm", rms_norm)
    matrices.hold(monkeypatch)
    options = Options("vulkan", "fp16", product="matrix_units 1x1x2x2x2x1x6")
    plan = check(agent, rows.encoder(1, 21, 1, 64), options, replace(matrices.HELD, unified_memory=False), shaders)
    assert "row_norm_dealt" in {program.kernel for program in plan.programs}


@EVERYWHERE
def test_what_others_read_of_one_stays_beside_it(
    agent: Agent, api: Backend, precision: Precision, shaders: Path
) -> None:
    graph = norms((2, 3, 8), 2, watched=True)
    plan = check(agent, graph, Options(api, precision), Limits(), shaders)
    kernels = [step.program for step in plan.steps if isinstance(step, Dispatch)]
    assert len([name for name in kernels if name.startswith("row_norm")]) == len(FORMS)


@EVERYWHERE
def test_large_and_small_numbers_are_normalised(
    agent: Agent, api: Backend, precision: Precision, shaders: Path
) -> None:
    """Sums go along rows, odd rows too, channels, and groups of channels; a half is infinite from 65520 on."""
    scales = {"small": 1e-4, "large": 300.0, "largest": 1e4}
    shapes = {"row": ((3, 36), 1), "odd": ((2, 5, 33), 2), "channel": ((2, 12, 3, 5), 1), "group": ((2, 4, 50), 2)}
    graph = side_by_side({f"{scale}.{name}": norms(*given) for scale in scales for name, given in shapes.items()})
    inputs = {
        name: (x * scales[name.partition(".")[0]]).astype(np.float16).astype(np.float32)
        for name, x in inputs_of(graph).items()
    }
    bundle = compile_graph(graph, Options(api, precision), Limits(), spirv_cache=shaders)
    ended = agent.run(bundle, inputs, "--warmup", 0, "--samples", 1)
    wanted = evaluate(graph, {name: x.astype(np.float64) for name, x in inputs.items()})
    found = {port.name: ended.output(i).reshape(port.shape) for i, port in enumerate(bundle.plan.outputs)}
    errors = {name: relative_error(found[name], wanted[name]) for name in graph.outputs}
    assert {name: error for name, error in errors.items() if not error <= TOLERANCE[precision]} == {}


def _near(build: Builder, shape: tuple[int, int], changed: str) -> Graph:
    """A layer normalisation of the rows of x, but for one thing."""
    x, y, single = build.input(*shape), build.input(*shape, name="y"), (shape[0], 1)
    mean = {"kind": "sum" if changed == "sum" else "mean", "start": 1, "stop": 2}
    centre = build.node("reduce", [y if changed == "mean of another" else x], single, **mean)
    sign = "add" if changed == "added" else "sub"
    distance = build.node("map", [x, centre], shape, expression=(sign, "a", "b"))
    squared = y if changed == "squares of another" else x if changed == "squares of x" else distance
    again = {"kind": "mean", "start": 1, "stop": 2}
    cube = build.node(
        "map", [squared], shape, expression=("abs", "a") if changed == "not squared" else ("mul", "a", "a")
    )
    root = "a" if changed == "no root" else ("sqrt", ("add", "a", 1e-3))
    root = ("add", ("sqrt", "a"), 1e-3) if changed == "epsilon behind the root" else root
    divisor = build.node("map", [build.node("reduce", [cube], single, **again)], single, expression=root)
    way = ("div", "b", "a") if changed == "upside down" else ("div", "a", "b")
    return build.outputs(build.node("map", [distance, divisor], shape, expression=way))


NEAR = {
    "": [True], "sum": [False], "mean of another": [False], "added": [False], "squares of another": [],
    "squares of x": [], "not squared": [], "no root": [], "epsilon behind the root": [], "upside down": [],
}  # fmt: skip
"""Form -> whether each normalisation found takes off a mean: what is not x less its mean may still have an RMS norm."""


def test_what_is_nearly_a_layer_normalisation_is_not_taken_for_one(agent: Agent, shaders: Path) -> None:
    graphs = {changed: _near(Builder(), (3, 8), changed) for changed in NEAR}
    for changed, graph in graphs.items():
        norms = [node.attributes for node in prepare(graph, Options("cpu")).nodes if node.op == "row_norm"]
        assert [each.get("centred", True) for each in norms] == NEAR[changed], changed
    check(agent, side_by_side(graphs), Options("cpu"), Limits(), shaders)


def _of_pictures(batch: int, height: int, width: int) -> Graph:
    """A layer normalisation over two axes, with a factor and a summand of each element."""
    build, shape, axes = Builder(), (batch, height, width), {"kind": "mean", "start": 1, "stop": 3}
    x = build.input(*shape)
    mean = build.node("reduce", [x], (batch, 1, 1), **axes)
    distance = build.node("map", [x, mean], shape, expression=("sub", "a", "b"))
    variance = build.node("reduce", [build.node("mul", [distance] * 2, shape)], (batch, 1, 1), **axes)
    y = build.node("map", [distance, variance], shape, expression=("div", "a", ("sqrt", ("add", "b", 1e-5))))
    y = build.node("mul", [y, build.constant(height, width)], shape)
    return build.outputs(build.node("add", [y, build.constant(height, width)], shape))


@EVERYWHERE
def test_several_axes_are_one_row_while_that_is_short(
    agent: Agent, api: Backend, precision: Precision, shaders: Path
) -> None:
    short, long = _of_pictures(2, 5, 12), _of_pictures(1, 130, 128)
    assert [node.op for node in prepare(short, Options(api, precision)).nodes] == ["reshape", "row_norm", "reshape"]
    assert "row_norm" not in [node.op for node in prepare(long, Options(api, precision)).nodes]
    check(agent, side_by_side({"short": short, "long": long}), Options(api, precision), Limits(), shaders)


def _of_groups(rng: np.random.Generator) -> Graph:
    """A normalisation of drawn groups of channels, between one and all, and what follows it."""
    build = Builder(rng)
    per_group, groups, n = (int(rng.choice(each)) for each in ((1, 2, 3, 4, 5, 8, 12), (1, 2, 3, 4, 8), (1, 2)))
    per_group, groups = (
        (int(rng.choice([40, 66])), int(rng.choice([1, 2]))) if rng.random() < 0.2 else (per_group, groups)
    )
    h, w = map(int, rng.integers(2, (80, 90) if rng.random() < 0.2 else (12, 12)))
    form = str(rng.choice(["rows", "instance", "steps", "moments", *(["image"] if groups == 1 else [])]))
    x = build.input(n, per_group * groups, h, w)
    x = build.conv(x, per_group * groups, (1, 1)) if rng.random() < 0.5 else x
    y = group_norm(build, x, groups, form)
    ends = ["", "hard_swish", "sigmoid", *(["relu"] if per_group * groups >= 8 else [])]  # of few it may leave nothing
    end = str(rng.choice(ends))
    return build.outputs(build.node(end, [y], build.graph.shapes[y]) if end else y)


@pytest.mark.parametrize("cpu_device", [True, False], ids=["cpu", "gpu"])
@pytest.mark.parametrize(
    ("api", "precision"), [("cpu", "fp32"), *covering("groups", ["opencl", "vulkan"], ["fp32", "fp16"])]
)
def test_groups_of_channels_are_one_step(
    agent: Agent, api: Backend, precision: Precision, cpu_device: bool, shaders: Path, seed: int
) -> None:
    rng = np.random.default_rng([seed, cpu_device])
    graph = side_by_side({f"{number}": _of_groups(rng) for number in range(12)})
    options, limits = Options(api, precision), Limits(cpu_device=cpu_device, max_work_group=128)
    found = [node.op for node in prepare(graph, options).nodes if node.op != "conv"]
    assert found == ["instance_norm"] * 12
    check(agent, graph, options, limits, shaders)
