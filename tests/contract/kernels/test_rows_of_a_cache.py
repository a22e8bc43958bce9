"""Rows of a prompt attend to a cache on GPUs, in tiles, in registers and one by one, against double precision."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kernels.compile import compile_graph
from kernels.ir.graph import Graph, Node
from kernels.options import Backend, Limits, Options, Precision
from kernels.reference import evaluate
from tests.contract.agent.driver import Agent
from tests.contract.kernels import matrices
from tests.unit.kernels.back.graphs import TOLERANCE, relative_error


@pytest.mark.parametrize("backend", ["opencl", "vulkan"])
def test_rows_attend_to_what_they_see(
    agent: Agent, seed: int, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Draw the heads, what is turned, normalised and capped, a window, and a device; behind what is valid the cache is
    infinite."""
    matrices.hold(monkeypatch)
    rng = np.random.default_rng([seed, len(backend)])
    for kernel in ("attend_rows_registers", "attend_rows", "attend"):
        draw = lambda first, end: int(rng.integers(first, end))  # noqa: E731
        batch, kept, groups, rows = (
            draw(1, 4),
            draw(1, 4),
            draw(1, 4),
            draw(1, 8) if kernel == "attend" else draw(8, 70),
        )
        capacity, depth, columns = rows + draw(0, 150), 8 * draw(1, 18), 4 * draw(1, 34)
        if in_registers := kernel == "attend_rows_registers":
            depth, columns = 32 * draw(1, 5), 64 * draw(1, 3)
        turned, normed, by_place = 8 * draw(0, depth // 8 + 1), bool(draw(0, 2)), bool(draw(0, 2))
        heads, window = kept * groups, int(rng.choice([0, draw(1, capacity + 9)]))
        steps = (
            (heads * rows * depth, depth, heads * depth) if draw(0, 2) else (heads * rows * depth, rows * depth, depth)
        )
        shapes: dict[str, tuple[int, ...]] = {
            "q": (batch * heads * rows * depth,), "k": (batch, kept, capacity, depth),
            "v": (batch, kept, capacity, columns), "ends": (batch,), "y": (batch, rows, heads * columns),
        }  # fmt: skip
        angles = (capacity, turned // 2) if by_place else (batch, rows, turned // 2)
        shapes |= {name: angles for name in ("cosines", "sines") if turned} | ({"scale": (depth,)} if normed else {})
        constants = {
            name: rng.standard_normal(shapes[name]).astype(np.float32)
            for name in ("cosines", "sines", "scale")
            if name in shapes
        }
        operands = ("q", "k", "v", "ends", *(name if name in shapes else "" for name in ("cosines", "sines", "scale")))
        attributes = {
            "rows": rows, "heads": heads, "place": (0, *steps), "turned": turned, "by_place": by_place,
            "normed": normed, "epsilon": 1e-5, "scale": depth**-0.5, "window": window,
            "softcap": float(rng.choice([0, 5])),
        }  # fmt: skip
        node = Node("attend", "attend", operands, ("y",), attributes)
        graph = Graph("rows", ("q", "k", "v", "ends"), ("y",), [node], shapes, constants, types={"ends": "i64"})
        precision: Precision = "fp16" if in_registers or draw(0, 2) else "fp32"
        device = matrices.HELD if in_registers else Limits(unified_memory=bool(draw(0, 2)))
        device = replace(device, local_bytes=32 << 10, compute_units=draw(1, 9))
        bundle = compile_graph(graph, Options(backend, precision), device)
        programs = [program.kernel for program in bundle.plan.programs if program.kernel.startswith("attend")]
        assert all((word in programs[0]) == (word in kernel) for word in ("rows", "registers")), programs
        ends = rng.integers(rows - 1, capacity, batch)
        valid = (np.arange(capacity) <= ends[:, None])[:, None, :, None]
        inputs = {name: rng.standard_normal(shapes[name]).astype(np.float32) for name in ("q", "k", "v")}
        inputs |= {name: np.where(valid, inputs[name], np.float32(np.inf)) for name in ("k", "v")} | {"ends": ends}
        ended = agent.run(bundle, inputs, "--warmup", 0, "--samples", 1)
        assert ended.code == 0, ended.events[-1]
        error = relative_error(ended.output(0).reshape(shapes["y"]), evaluate(graph, inputs)["y"])
        assert error <= TOLERANCE[precision], (attributes, programs)
