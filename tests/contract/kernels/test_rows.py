"""Attention, layer normalisation and endings of dense layers: each one kernel on every interface, endings on GPUs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from kernels.ir.graph import Graph, Node
from kernels.lower.gpu.rows.attention import AttentionTile
from kernels.options import Backend, Limits, Options
from kernels.passes import prepare
from kernels.passes.rows import ATTENTION_LOCAL_BYTES
from kernels.plan.model import Dispatch
from tests.contract.agent.driver import Agent
from tests.unit.kernels.back.graphs import Builder, covering, side_by_side
from tests.unit.kernels.back.norms import layer_norm
from tests.unit.kernels.back.rows import encoder, grids, windows

from . import matrices
from .test_agreement import check

GPUS = ("opencl", "vulkan")
APIS = pytest.mark.parametrize("api", GPUS)


def encoders() -> Graph:
    return side_by_side(
        {
            "one": encoder(1, 5, 2, 12), "several": encoder(3, 37, 2, 64), "across": encoder(2, 21, 3, 8, keys=70),
            "narrow": encoder(1, 9, 1, 8, keys=2),
        }
    )  # fmt: skip


@pytest.mark.parametrize("threads", [1, 3])
def test_an_encoder_takes_few_operations_on_the_cpu(agent: Agent, threads: int, shaders: Path) -> None:
    graph = side_by_side(
        {"small": encoders(), "large": encoder(1, 300, 2, 64), "long": encoder(2, 3, 1, 16, keys=9000)}
    )
    plan = check(agent, graph, Options("cpu", threads=threads), Limits(), shaders)
    kernels = {program.kernel for program in plan.programs}
    assert {"attention", "row_norm"} <= kernels
    assert not kernels & {"softmax", "reduce", "transpose", "matmul"}


@pytest.mark.parametrize(("api", "precision"), covering("encoders", GPUS, ["fp32", "fp16"]))
def test_an_encoder_takes_few_kernels(agent: Agent, api: Backend, precision: str, shaders: Path) -> None:
    graph = side_by_side({"even": encoders(), "odd": encoder(2, 5, 3, 5)})
    plan = check(agent, graph, Options(api, precision), Limits(), shaders)  # type: ignore[arg-type]
    kernels = {program.kernel for program in plan.programs}
    assert {"attention", "row_norm"} <= kernels
    assert not kernels & {"softmax_rows", "reduce_rows", "transpose_tiled"}


@pytest.mark.parametrize(("api", "precision"), covering("windows", GPUS, ["fp32", "fp16"]))
def test_windows_are_attended_where_their_rows_lie(agent: Agent, api: Backend, precision: str, shaders: Path) -> None:
    """The small tile does so and, on one compute unit, the large one."""
    graph = side_by_side(
        {
            "plain": windows(2, 6, 3, 2, 8), "rolled": windows(2, 8, 4, 3, 16, rolled=2),
            "cosine": windows(1, 8, 4, 2, 12, rolled=1, cosine=True), "many": windows(1, 14, 7, 1, 32, rolled=3),
        }
    )  # fmt: skip
    large = Limits(compute_units=1, unified_memory=False, max_work_group=1024, local_bytes=48 << 10)
    for limits in (Limits(), large):
        plan = check(agent, graph, Options(api, precision), limits, shaders)  # type: ignore[arg-type]
        kernels = {program.kernel for program in plan.programs}
        assert {"attention_biased_listed", "attention_biased_listed_cosine"} <= kernels
        copies = ("transpose", "take", "copy", "pack", "unpack", "softmax", "map", "reduce")
        assert not [name for name in kernels if name.startswith(copies)]


@APIS
def test_rows_without_a_key_attend_to_all_alike(agent: Agent, api: Backend, shaders: Path) -> None:
    """Their scores are as small as those of keys that are not there."""
    graph = windows(1, 6, 3, 2, 8, rolled=1, lowest=float(np.finfo(np.float32).min))
    plan = check(agent, graph, Options(api), Limits(), shaders)
    assert "attention_biased_listed" in {program.kernel for program in plan.programs}


@APIS
def test_pictures_are_attended_in_windows_and_in_grids(agent: Agent, api: Backend, shaders: Path) -> None:
    plan = check(agent, grids(2, 6, 3, 2, 8), Options(api), Limits(), shaders)
    kernels = [program.kernel for program in plan.programs]
    assert "attention_biased_listed" in kernels
    assert not [name for name in kernels if name.startswith(("take", "softmax"))]


@APIS
def test_a_depth_that_several_work_groups_share_out_is_added_up(agent: Agent, api: Backend, shaders: Path) -> None:
    desktop = Limits(unified_memory=False, compute_units=128, max_work_group=1024, local_bytes=32768)
    plan = check(agent, encoder(1, 37, 4, 64), Options(api, product="tiled"), desktop, shaders)
    kernels = [program.kernel for program in plan.programs]
    assert "row_norm_held" in kernels and any(name.startswith("sum_parts") for name in kernels)


@pytest.mark.parametrize(("api", "parts"), covering("registers", GPUS, [1, 4]))
def test_an_encoder_whose_matrices_stay_in_registers_computes_the_same(
    agent: Agent, api: Backend, parts: int, monkeypatch: pytest.MonkeyPatch, shaders: Path
) -> None:
    matrices.hold(monkeypatch)
    words = "matrix_units 1x1x2x2x2x2x5"
    limits = replace(matrices.HELD, compute_units=1 if parts == 1 else 1000)
    graph = encoder(1, 37, 3, 64, keys=70)
    graph = replace(graph, outputs=graph.outputs[:1])  # no rows that are normalised
    plan = check(agent, graph, Options(api, "fp16", product=words), limits, shaders)
    assert words in plan.options.values()
    kernels = {program.kernel for program in plan.programs}
    assert len([name for name in kernels if name.startswith("matmul_units_norm")]) == 2
    assert not [name for name in kernels if name.startswith("row_norm")]
    (program,) = [program for program in plan.programs if program.kernel == "attention_registers"]
    assert program.work_group[0] == (64 if parts == 1 else 128)
    assert (program.local_bytes > 4 * 128 * 16 + 64 + 2 * 128 * 16) == (parts > 1)


@pytest.mark.parametrize(("batch", "heads"), [(1, 1), (3, 2)])
@pytest.mark.parametrize("api", get_args(Backend))
def test_rows_that_nobody_reads_are_not_computed(
    agent: Agent, api: Backend, batch: int, heads: int, shaders: Path
) -> None:
    """All rows of the first of two layers are computed, and of the second, behind its q, k and v, two of a sequence."""
    width = 16 * heads
    whole = encoder(batch, 21, heads, 16, layers=2)
    cut = Node("cut", "slice", whole.outputs[:1], ("cut:0",), {"axis": 1, "start": 5, "stop": 7})
    graph = replace(
        whole, nodes=[*whole.nodes, cut], outputs=(cut.output,), shapes={**whole.shapes, cut.output: (batch, 2, width)}
    )
    check(agent, graph, Options(api), Limits(), shaders)
    rows = [prepared.shapes[node.output][0] for prepared in [prepare(graph, Options(api))] for node in prepared.nodes
            if node.op == "dense"]  # fmt: skip
    assert rows == 5 * [21 * batch] + 3 * [2 * batch]


def test_attention_with_a_constant_on_its_scores_is_computed_for_all_rows(agent: Agent, shaders: Path) -> None:
    """The constant has a row for each row of q: where two are read, all are computed, and the two are cut behind it."""
    whole = encoder(3, 21, 2, 16)
    (softmax,) = (node for node in whole.nodes if node.op == "softmax")
    scores = softmax.inputs[0]
    bias = np.random.default_rng(7).standard_normal(whole.shapes[scores]).astype(np.float32)
    biased = Node("biased", "add", (scores, "bias"), ("biased:0",))
    cut = Node("cut", "slice", whole.outputs[:1], ("cut:0",), {"axis": 1, "start": 5, "stop": 7})
    at = whole.nodes.index(softmax)
    graph = replace(
        whole,
        nodes=[*whole.nodes[:at], biased, replace(softmax, inputs=biased.outputs), *whole.nodes[at + 1 :], cut],
        outputs=cut.outputs,
        constants={**whole.constants, "bias": bias},
        shapes={**whole.shapes, "bias": bias.shape, biased.output: bias.shape, cut.output: (3, 2, 32)},
    )
    plan = check(agent, graph, Options("opencl"), Limits(), shaders)
    assert "attention_biased" in {program.kernel for program in plan.programs}
    prepared = prepare(graph, Options("opencl"))
    assert [node.attributes["sizes"][2] for node in prepared.nodes if node.op == "attention"] == [21]
    assert [prepared.shapes[node.output][0] for node in prepared.nodes if node.op == "dense"] == [63, 6, 6, 6]


@pytest.mark.parametrize(
    ("tile", "normed", "copied"), [("1x1x2x2x2x1x6", (2, 1), (1, 2)), ("1x2x1x1x2x1x4", (1, 1), (1, 1))]
)
def test_rows_are_written_as_the_products_behind_them_have_them(
    agent: Agent, tile: str, normed: tuple[int, int], copied: tuple[int, int], monkeypatch: pytest.MonkeyPatch,
    shaders: Path,
) -> None:  # fmt: skip
    """Normalisations write so, and a dense layer whose own tile reads such rows or others."""
    matrices.hold(monkeypatch)
    limits = replace(matrices.HELD, unified_memory=False)
    wide = {"dense52": {"product": f"matrix_units {tile}"}}
    asked = Options("vulkan", "fp16", product="matrix_units 1x1x2x2x2x1x6", layers=wide)
    graph = encoder(1, 21, 1, 64)
    for outputs, norms, copies in zip((graph.outputs[:1], graph.outputs), normed, copied, strict=True):
        plan = check(agent, replace(graph, outputs=outputs), asked, limits, shaders)
        programs = {program.id: program.kernel for program in plan.programs}
        steps = {step.layer: step.program for step in plan.steps if isinstance(step, Dispatch)}
        assert sum(programs[step] == "row_norm_dealt" for step in steps.values()) == norms
        assert sum(programs[step] == "deal_rows" for step in steps.values()) == copies
        assert [layer for layer, step in steps.items() if "dealt_out1" in step] == ["dense52"]


@APIS
def test_patches_are_rows_of_a_product(agent: Agent, api: Backend, shaders: Path) -> None:
    made = Builder()
    x = made.input(2, 3, 12, 8)
    y = made.conv(x, 12, (4, 4), (4, 4))
    y = made.node("reshape", [y], (2, 12, 6), shape=(2, 12, 6))
    graph = made.outputs(made.node("transpose", [y], (2, 6, 12), perm=(0, 2, 1)))
    plan = check(agent, graph, Options(api), Limits(), shaders)
    assert not [program.kernel for program in plan.programs if program.kernel.startswith(("conv", "transpose"))]
    for asked in (Options(api, algorithm="direct"), Options(api, layers={"conv1": {"granularity": 2}})):
        assert "conv" in {node.op for node in prepare(graph, asked).nodes}, "its algorithm is asked for"


@APIS
def test_a_device_of_little_local_memory_takes_no_attention_in_one(agent: Agent, api: Backend, shaders: Path) -> None:
    assert AttentionTile(8, 2, 16, 16).local_bytes <= ATTENTION_LOCAL_BYTES
    small = Limits(local_bytes=16384, max_work_group=128)
    plan = check(agent, encoder(1, 9, 2, 64), Options(api), small, shaders)
    assert "attention" not in {program.kernel for program in plan.programs}


def test_attention_whose_scores_another_reads_stays_as_it_was_and_so_does_a_mean_beside_its_norm() -> None:
    graph = encoder(1, 5, 2, 12)
    scores = next(node for node in graph.nodes if node.op == "softmax").inputs[0]
    mean = next(node for node in graph.nodes if node.op == "reduce").output
    watched = replace(graph, outputs=(*graph.outputs, scores, mean))
    ops = [node.op for node in prepare(watched, Options("opencl")).nodes]
    assert "attention" not in ops
    assert (ops.count("row_norm"), ops.count("reduce")) == (2, 1)
    assert [node.op for node in prepare(graph, Options("opencl")).nodes].count("row_norm") == 2
    assert all("ending" not in node.attributes for node in prepare(graph, Options("cpu")).nodes)


@pytest.mark.parametrize("api", get_args(Backend))
def test_a_normalisation_may_end_after_any_of_its_nodes(agent: Agent, api: Backend, shaders: Path) -> None:
    """Rows less their mean are the result of many a network."""
    build = Builder()
    layer_norm(build, build.input(2, 3, 8), (2, 3, 8))
    whole, nodes = build.graph, build.graph.nodes
    ends = {str(i): replace(whole, nodes=nodes[: i + 1], outputs=nodes[i].outputs) for i in range(len(nodes))}
    check(agent, side_by_side(ends), Options(api), Limits(), shaders)


def test_a_dense_layers_one_result_may_become_a_scalar() -> None:
    made = Builder()
    y = made.node("dense", [made.input(1, 4), made.constant(4, 1)], (1, 1))
    z = made.node("reshape", [y], (), shape=())
    graph = made.outputs(made.node("map", [z], (), expression=("tanh", "a")))
    (last,) = [node for node in prepare(graph, Options("opencl")).nodes if node.outputs == graph.outputs]
    assert last.op == "reshape"
