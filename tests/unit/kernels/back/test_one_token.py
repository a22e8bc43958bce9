"""The steps of one token: attention over any past, in splits, and products of one row of any size."""

from __future__ import annotations

import numpy as np
import pytest

from kernels.compile import compile_graph
from kernels.ir.graph import Graph
from kernels.options import Limits, Options, Precision
from kernels.plan.opencl_interpreter import run_opencl
from kernels.reference import evaluate

from .graphs import TOLERANCE, Builder, inputs_of, relative_error, side_by_side

Arrays = dict[str, np.ndarray]


def drawn_device(rng: np.random.Generator) -> Limits:
    group, local = int(rng.choice([64, 256, 1024])), int(rng.choice([16, 48])) << 10
    units = int(rng.choice([0, rng.integers(1, 160)]))
    return Limits(unified_memory=bool(rng.integers(2)), max_work_group=group, local_bytes=local, compute_units=units)


def attention(rng: np.random.Generator) -> tuple[Graph, Arrays]:
    """Heads, sizes, window, cap and angles are drawn; of the past some is valid, and what is behind infinite."""
    build, batch, shared = Builder(rng), int(rng.integers(1, 3)), int(rng.integers(1, 4))
    heads, capacity = shared * int(rng.choice([1, 2, 3, 7, 9, 11])), int(rng.integers(1, 400))
    depth, columns = (4 * int(rng.choice([2, 4, 5, 16, 20, 32])) for _ in range(2))
    turned, normed = 8 * int(rng.integers(0, depth // 8 + 1)), bool(rng.integers(2))
    x = build.input(batch, 1, heads * depth)
    caches = [build.input(batch, shared, capacity, n, name=f"cache{n}{i}") for i, n in enumerate((depth, columns))]
    ends = rng.integers(0, capacity, batch)
    name = build.constant(batch)
    build.graph.constants[name] = ends.astype(np.float32)
    angles = [build.constant(capacity, turned // 2) for _ in range(2)] if turned else ["", ""] * normed
    attributes = {
        "rows": 1, "turned": turned, "by_place": True, "normed": normed, "epsilon": 0.01 * normed, "heads": heads,
        "place": (0, heads * depth, depth, heads * depth), "scale": depth**-0.5,
        "window": int(rng.choice([0, rng.integers(1, capacity + 1)])), "softcap": float(rng.choice([0.0, 2.5])),
    }  # fmt: skip
    operands = [x, *caches, name, *angles, *[build.constant(depth)] * normed]
    graph = build.outputs(build.node("attend", operands, (batch, 1, heads * columns), **attributes))
    inputs = inputs_of(graph)
    behind = (np.arange(capacity) > ends[:, None])[:, None, :, None]
    return graph, {**inputs, **{each: np.where(behind, np.float32(np.inf), inputs[each]) for each in caches}}


def row(rng: np.random.Generator) -> tuple[Graph, Arrays]:
    """One row times weights, with a bias, an activation, or neither; or two matrices, one of which is a gate."""
    build = Builder(rng)
    depth, columns = 4 * int(rng.integers(1, 700)), int(rng.integers(1, 900))
    operands = [build.input(1, depth), build.constant(depth, columns)]
    if rng.integers(2):
        gate, up = (build.node("dense", [operands[0], build.constant(depth, columns)], (1, columns)) for _ in range(2))
        opened = build.node("mul", [gate, build.node("sigmoid", [gate], (1, columns))], (1, columns))
        graph = build.outputs(build.node("mul", [opened, up], (1, columns)))
        return graph, inputs_of(graph)
    operands += [build.constant(columns)] if rng.integers(2) else []
    attributes = {"activation": ("relu",)} if rng.integers(2) else {}
    graph = build.outputs(build.node("dense", operands, (1, columns), **attributes))
    return graph, inputs_of(graph)


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize("kind", [attention, row])
def test_a_token_is_computed_as_the_reference_does(seed: int, kind: object, precision: Precision) -> None:
    rng = np.random.default_rng([seed, len(str(kind)), len(precision), precision == "fp16"])
    drawn = [kind(rng) for _ in range(2)]  # type: ignore[operator]
    graph = side_by_side({f"g{index}": each for index, (each, _) in enumerate(drawn)})
    inputs = {f"g{index}.{name}": x for index, (_, own) in enumerate(drawn) for name, x in own.items()}
    assert inputs.keys() == set(graph.inputs)
    limits = drawn_device(rng)
    bundle = compile_graph(graph, Options("opencl", precision), limits)
    kernels = {program.kernel.split("_product")[0].split("_token")[0] for program in bundle.plan.programs}
    assert kernels & {"attend", "row"}
    texts = b"".join(bundle.files[program.opencl.file] for program in bundle.plan.programs if program.opencl)
    assert kind is attention or (b"(IN_ORDER " in texts) != limits.unified_memory
    wanted, found = evaluate(graph, inputs), run_opencl(bundle, inputs).outputs
    errors = {name: relative_error(found[name], wanted[name]) for name in graph.outputs}
    assert all(error <= TOLERANCE[precision] for error in errors.values()), (errors, limits)
