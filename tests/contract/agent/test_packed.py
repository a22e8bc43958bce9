"""Products and rows of packed weights by the agent, against what `gguf` unpacks and products in double precision."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from pathlib import Path

import gguf
import numpy as np
import pytest

from benchmarks.engine.tokens import Model, write_model
from kernels.catalog.product.packed import block_tile
from kernels.compile import compile_generation, compile_graph
from kernels.frontend.load import load_decoder
from kernels.ir.packed import FORMATS
from kernels.options import Backend, Limits, Options, Precision
from kernels.plan.model import Dispatch
from kernels.plan.steps import accesses
from tests.unit.kernels.back.graphs import Builder
from tests.unit.kernels.back.packed_matrices import KINDS, by_gguf, layers, packed_matrix, stored
from tests.unit.kernels.front.gguf_models import SAID, SHARED, SIZES, write_decoder

from .driver import Agent


@pytest.mark.parametrize("isa", ["generic", "avx2", "avx512f"])
def test_products_and_rows(agent: Agent, seed: int, isa: str) -> None:
    """Each format once; errors are in parts of what the sizes of the products add up to."""
    draw = np.random.default_rng(seed)
    drawn = layers(KINDS, draw)
    bundle = compile_graph(drawn.graph, Options("cpu"), Limits())
    used = [step.program for step in bundle.plan.steps if isinstance(step, Dispatch)]
    assert (used.count("dense_packed"), used.count("gather_packed")) == (len(KINDS), len(KINDS))
    threads = ("--threads", int(draw.integers(1, 4)))
    ended = agent.run(bundle, drawn.inputs, "--warmup", 0, "--samples", 1, *threads, POCKETFARM_CPU_ISA=isa)
    if ended.code and "this processor has" in ended.error.message:
        pytest.skip(ended.error.message)
    assert ended.code == 0, ended.events[-1]
    found = {port.name: ended.output(i) for i, port in enumerate(bundle.plan.outputs)}
    assert all(error < 1e-6 for error in drawn.errors(found).values()), drawn.errors(found)


@pytest.mark.parametrize("backend", ["opencl", "vulkan"])
def test_gpus_unpack_what_they_read(agent: Agent, seed: int, backend: Backend, tmp_path: Path) -> None:
    """Two formats on any device, whose weights lie in memory once, packed; or also as copies, which a step unpacks."""
    rng = np.random.default_rng([seed, len(backend)])
    precision: Precision = "fp16" if rng.random() < 0.5 else "fp32"
    device = Limits(
        unified_memory=bool(rng.integers(2)), max_work_group=int(rng.choice([64, 256])), local_bytes=32 << 10
    )
    one, other = rng.choice(KINDS, 2, replace=False)
    drawn, copied = layers([one, other, one], rng), bool(rng.integers(2))
    product, order = "registers" if copied else "auto", ("memory", "waves")[int(rng.integers(2))]
    fuse = str(rng.choice(["all", "activation"]))
    options = Options(backend, precision, product=product, order=order, fuse=fuse)  # type: ignore[arg-type]
    bundle = compile_graph(drawn.graph, options, device, spirv_cache=tmp_path)
    unpacking = [step for step in bundle.plan.steps if isinstance(step, Dispatch) and "unpack_rows" in step.program]
    weights = [each for name, each in drawn.graph.constants.items() if name.endswith(" w")]
    assert len(unpacking) == copied * len({block_tile(each.format) for each in weights})  # type: ignore[union-attr]
    assert bundle.plan.blob_bytes <= 1.1 * drawn.packed_bytes
    ended = agent.run(bundle, drawn.inputs, "--warmup", 0, "--samples", 1)
    assert ended.code == 0, ended.events[-1]
    found = {port.name: ended.output(i) for i, port in enumerate(bundle.plan.outputs)}
    errors, most = drawn.errors(found), {"fp32": 1e-6, "fp16": 3e-3}[precision]
    assert all(error < most for error in errors.values()), (errors, device)


def test_a_plan_has_the_bytes_of_the_weights(seed: int) -> None:
    """Panels take what blocks take, but for rows that fill up the last sixteen, and factors of a byte each."""
    rng = np.random.default_rng(seed)
    for kind in KINDS:
        matrix, build = packed_matrix(kind, 16 * int(rng.integers(1, 9)), 512, rng), Builder(rng)
        x, weight = build.input(1, 512), stored(build, "w", matrix.T)
        graph = build.outputs(build.node("dense", [x, weight], (1, len(matrix.data))))
        for backend in ("cpu", "opencl"):
            plan = compile_graph(graph, Options(backend), Limits()).plan  # type: ignore[arg-type]
            assert plan.blob_bytes <= 1.03 * matrix.data.nbytes + 16
            (step,) = (step for step in plan.steps if isinstance(step, Dispatch))
            assert step.bytes == matrix.data.nbytes + 4 * (512 + len(matrix.data))


def test_memory_holds_the_weights_once(agent: Agent, seed: int) -> None:
    """The compiler and the agent have no copy of what is packed, also where two tensors are of the same bytes."""
    rng = np.random.default_rng(seed)
    kind = str(rng.choice([*FORMATS]))
    columns, bytes_ = 512, 40 << 20
    rows = bytes_ * FORMATS[kind].block // FORMATS[kind].block_bytes // columns
    matrix, build = packed_matrix(kind, rows, columns, rng), Builder(rng)
    again = replace(matrix, parts=tuple(np.array_split(matrix.data.copy(), int(rng.integers(1, 4)))))
    places, table, weight = build.input(1, name="places"), stored(build, "t", matrix), stored(build, "w", again.T)
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
    real = by_gguf(matrix).astype(np.float64)
    wanted = real @ real[place]
    error = np.linalg.norm(ended.output(0) - wanted)
    assert error < 1e-6 * np.linalg.norm(np.abs(real) @ np.abs(real[place])), kind


def test_a_decoder_takes_its_file_and_its_cache(agent: Agent, tmp_path: Path, seed: int) -> None:
    """Its plan is a long text, of which the memory that reading it takes is given back before the weights are read."""
    rng = np.random.default_rng(seed)
    path, shape = tmp_path / "m.gguf", Model(int(rng.integers(28, 33)), 512, 8, 2, 64, 2048, 4096)
    write_model(path, shape, 256, str(rng.choice(["q4_0", "q4_1"])))
    bundle = compile_generation(load_decoder(path, int(rng.integers(20, 40)), (8, 1)), Options("cpu"), Limits())
    cache = sum(buffer.bytes for buffer in bundle.plan.buffers if buffer.role == "variable")
    np.arange(9).astype("<i8").tofile(file := agent.folder / "tokens.bin")
    ended = agent.run(bundle, {}, "--tokens", file, "--generate", 2, "--warmup", 0, "--samples", 1, "--threads", 1)
    assert ended.code == 0, ended.events[-1]
    assert ended.one("memory").vm_hwm_bytes <= 1.15 * path.stat().st_size + cache


@pytest.mark.parametrize("backend", ["cpu", "opencl", "vulkan"])
def test_a_token_reads_the_file_and_the_valid_cache(tmp_path: Path, seed: int, backend: Backend) -> None:
    """Counted from the plan: weights by each step that reads them, whatever texts it takes side by side, a table by
    its row, the cache of each text where it is full; what takes or appends rows touches no more than these."""
    rng = np.random.default_rng([seed, len(backend)])
    path, kind, capacity = tmp_path / "m.gguf", str(rng.choice([*FORMATS][:5])), int(rng.integers(20, 60))
    architecture, sequences = str(rng.choice([*SAID])), int(rng.choice([1, rng.integers(2, 9)]))
    write_decoder(path, architecture, rng, kind, layers=2)
    held = {tensor.name: int(tensor.n_bytes) for tensor in gguf.GGUFReader(path).tensors}
    if "output.weight" in held:
        del held["token_embd.weight"]
    steps = load_decoder(path, capacity, (8, 1), sequences=sequences)
    plan = compile_generation(steps, Options(backend), Limits(), spirv_cache=tmp_path).plan
    assert plan.generation is not None
    programs, buffers = {each.id: each for each in plan.programs}, {each.id: each for each in plan.buffers}
    parameters, token = {each.id: each.parameters for each in plan.programs}, plan.generation.passes[-1]
    read = {"weight": 0, "variable": 0}
    for step in plan.steps[token.begin : token.end]:
        rows = isinstance(step, Dispatch) and programs[step.program].kernel.startswith(("gather", "append"))
        read["weight"] += step.bytes if rows else 0
        for access in accesses(step, parameters):
            buffer = buffers[access.buffer]
            by_place = capacity if buffer.tensor.shape[0] == capacity else 1
            if access.reads and not rows and buffer.role in read:
                read[buffer.role] += buffer.bytes // by_place
    cache = sum(buffer.bytes for buffer in plan.buffers if buffer.role == "variable")
    assert cache == sequences * 2 * 2 * 4 * SHARED * capacity * SIZES.get(architecture, 32)
    assert cache <= read["variable"] and sum(held.values()) < 1.1 * read["weight"]
    assert sum(read.values()) <= 1.1 * (sum(held.values()) + cache), (kind, read, cache)
