"""Products and rows of packed weights by the agent, against what `gguf` unpacks and products in double precision."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from kernels.compile import compile_graph
from kernels.ir.packed import FORMATS, PackedMatrix
from kernels.options import Limits, Options
from kernels.plan.model import Dispatch
from tests.unit.kernels.back.graphs import Builder
from tests.unit.kernels.back.norms import rms_norm
from tests.unit.kernels.back.packed_matrices import KINDS, by_gguf, packed_matrix

from .driver import Agent

ACTIVATIONS = {(): lambda x: x, ("relu",): lambda x: np.maximum(x, 0), ("sigmoid",): lambda x: (1 + np.tanh(x / 2)) / 2}


@pytest.mark.parametrize("isa", ["generic", "avx2", "avx512f"])
def test_products_and_rows(agent: Agent, seed: int, isa: str) -> None:
    """One product of each format, its norm, bias, activation and what is added behind drawn; the same weights by rows.

    Errors are in parts of what the sizes of the products add up to.
    """
    build, wanted = Builder(np.random.default_rng(seed)), dict[str, np.ndarray]()
    draw, given, sizes = build.rng, dict[str, np.ndarray](), dict[str, np.ndarray]()
    for kind in KINDS:
        matrix = packed_matrix(kind, int(draw.integers(1, 150)), int(draw.integers(1, 700)), draw)
        stored = (by_gguf(matrix) if kind in FORMATS else matrix.unpacked()).astype(np.float64)
        rows, count = int(draw.choice([1, 2, draw.integers(3, 70)])), int(draw.integers(1, 5))
        outputs, inputs = stored.shape
        x, places = build.input(rows, inputs, name=f"{kind} x"), build.input(count, name=f"{kind} places")
        given[x] = draw.standard_normal((rows, inputs)).astype(np.float32)
        given[places] = draw.integers(-outputs, outputs, count)
        build.graph.types[places] = "i64"
        table, weight = (_constant(build, f"{kind} {word}", each) for word, each in (("t", matrix), ("w", matrix.T)))
        activation = list(ACTIVATIONS)[draw.integers(len(ACTIVATIONS))]
        bias = [build.constant(outputs)] if draw.random() < 0.5 else []
        attributes = {"activation": activation} if activation else {}
        values, left = given[x].astype(np.float64), x
        if draw.random() < 0.5:
            left = rms_norm(build, x, (rows, inputs), shifted=False)
            scale = [*build.graph.constants.values()][-1]
            values = values / np.sqrt((values**2).mean(-1, keepdims=True) + 1e-5) * scale
        y = build.node("dense", [left, weight, *bias], (rows, outputs), **attributes)
        sums = values @ stored.T + (build.graph.constants[bias[0]] if bias else 0)
        wanted[y], sizes[y] = ACTIVATIONS[activation](sums), np.abs(values) @ np.abs(stored).T + np.abs(sums)
        if draw.random() < 0.5:
            beside = build.input(rows, outputs, name=f"{kind} beside")
            given[beside] = draw.standard_normal((rows, outputs)).astype(np.float32)
            before, y = y, build.node("add", [y, beside], (rows, outputs))
            wanted[y] = wanted.pop(before) + given[beside]
            sizes[y] = sizes.pop(before) + np.abs(given[beside])
        taken = build.node("gather", [table, places], (count, inputs), axis=0)
        wanted[taken] = sizes[taken] = stored[given[places]]
    bundle = compile_graph(build.outputs(*wanted), Options("cpu"), Limits())
    used = [step.program for step in bundle.plan.steps if isinstance(step, Dispatch)]
    assert (used.count("dense_packed"), used.count("gather_packed")) == (len(KINDS), len(KINDS))
    ended = agent.run(
        bundle, given, "--warmup", 0, "--samples", 1, "--threads", int(draw.integers(1, 4)), POCKETFARM_CPU_ISA=isa
    )
    if ended.code and "this processor has" in ended.error.message:
        pytest.skip(ended.error.message)
    assert ended.code == 0, ended.events[-1]
    for i, port in enumerate(bundle.plan.outputs):
        error = np.linalg.norm(ended.output(i).reshape(port.shape) - wanted[port.name])
        assert error < 1e-6 * np.linalg.norm(sizes[port.name]), port.name


def test_a_plan_has_the_bytes_of_the_weights(seed: int) -> None:
    """Panels take what blocks take, but for rows that fill up the last sixteen, and factors of a byte each."""
    rng = np.random.default_rng(seed)
    for kind in KINDS:
        matrix, build = packed_matrix(kind, 16 * int(rng.integers(1, 9)), 512, rng), Builder(rng)
        x, weight = build.input(1, 512), _constant(build, "w", matrix.T)
        graph = build.outputs(build.node("dense", [x, weight], (1, len(matrix.data))))
        plan = compile_graph(graph, Options("cpu"), Limits()).plan
        assert plan.blob_bytes <= 1.03 * matrix.data.nbytes + 16
        (step,) = (step for step in plan.steps if isinstance(step, Dispatch))
        assert step.bytes == matrix.data.nbytes + 4 * (512 + len(matrix.data))


def test_memory_holds_the_weights_once(agent: Agent, seed: int) -> None:
    """Neither the compiler nor the agent has a copy of what is packed, also where two tensors are of the same bytes."""
    rng = np.random.default_rng(seed)
    kind = str(rng.choice([*FORMATS]))
    columns, bytes_ = 512, 40 << 20
    rows = bytes_ * FORMATS[kind].block // FORMATS[kind].block_bytes // columns
    matrix, build = packed_matrix(kind, rows, columns, rng), Builder(rng)
    again = replace(matrix, parts=tuple(np.array_split(matrix.data.copy(), int(rng.integers(1, 4)))))
    places, table, weight = build.input(1, name="places"), _constant(build, "t", matrix), _constant(build, "w", again.T)
    build.graph.types[places] = "i64"
    row = build.node("gather", [table, places], (1, columns), axis=0)
    y = build.node("dense", [row, weight], (1, rows))
    tracemalloc.start()
    try:
        bundle = compile_graph(build.outputs(y), Options("cpu"), Limits())
        assert tracemalloc.get_traced_memory()[1] < 0.75 * bytes_, kind
    finally:
        tracemalloc.stop()
    assert bundle.plan.blob_bytes < 1.03 * bytes_
    place = int(rng.integers(rows))
    ended = agent.run(bundle, {places: np.array([place])}, "--warmup", 0, "--samples", 1)
    assert ended.code == 0, ended.events[-1]
    assert ended.one("memory").vm_hwm_bytes < 1.15 * bundle.plan.blob_bytes + (12 << 20)
    stored = by_gguf(matrix).astype(np.float64)
    wanted = stored @ stored[place]
    error = np.linalg.norm(ended.output(0) - wanted)
    assert error < 1e-6 * np.linalg.norm(np.abs(stored) @ np.abs(stored[place])), kind


def _constant(build: Builder, name: str, matrix: PackedMatrix) -> str:
    build.graph.constants[name], build.graph.shapes[name] = matrix, matrix.shape
    build.graph.types[name] = "f32"
    return name
